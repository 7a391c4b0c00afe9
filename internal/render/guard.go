package render

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/resmap"
)

const (
	// buildMemory is how many bytes the builds of a run may need, and buildShare how many more for each byte that they read.
	buildMemory = 160 << 20
	buildShare  = 40

	// buildTime is how long they may take, and timeShare how much longer for each byte that they read: 2 s for a MiB.
	buildTime = 8 * time.Second
	timeShare = 2 * time.Microsecond

	// watchInterval is how often a build is looked after. It bounds what one can need before it is noticed.
	watchInterval = 2 * time.Millisecond

	// nodeWeight is about what a value needs besides its text, in bytes.
	nodeWeight = 64
)

// guard bounds what the builds of a run need in proportion to what they read. kustomize cannot be stopped: a build that
// needs more ends everything, and the program is expected to end then.
type guard struct {
	end    func(error) // ends the context of the renderer
	before uint64      // what was in use, in bytes

	mu    sync.Mutex
	seen  map[string]bool
	read  int64 // bytes of different files
	built int64 // what is kept of the builds
	spent time.Duration
	err   error
}

func newGuard(end func(error)) *guard {
	return &guard{end: end, seen: map[string]bool{}, before: usage().objects}
}

// exhaustedError is a build that was given up.
type exhaustedError struct {
	what string // is built
	need string
}

func (e *exhaustedError) Error() string {
	return fmt.Sprintf("%s: the kustomize build was given up: it needs more than %s", e.what, e.need)
}

// Hint says what such builds have in common.
func (e *exhaustedError) Hint() string {
	return "look for replacements and patches that copy what they copied before, for one base that is included in many ways, and for variables that are made of each other"
}

// reads counts a file, once.
func (g *guard) reads(path string, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.seen[path] {
		g.seen[path] = true
		g.read += int64(size)
	}
}

func (g *guard) memory() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return buildMemory + buildShare*g.read
}

// keeps counts what stays of a build.
func (g *guard) keeps(what string, weight int64) error {
	limit := g.memory()
	g.mu.Lock()
	g.built += weight
	over := g.built > limit
	g.mu.Unlock()
	if !over {
		return nil
	}
	return g.giveUp(&exhaustedError{what, memoryText(limit)})
}

func memoryText(limit int64) string { return fmt.Sprintf("%d MiB", limit>>20) }

func (g *guard) giveUp(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
		g.end(err)
	}
	return err
}

// failure is what ended the run, nil for nothing.
func (g *guard) failure() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// over looks at what is in use. Garbage does not count.
func (g *guard) over(what string) error {
	limit := g.memory()
	used := func(now uint64) int64 { return int64(now) - int64(g.before) } //nolint:gosec // far less than 2^63
	now := usage()
	if used(now.objects) <= limit {
		return nil
	}
	if used(now.objects) < limit*3/2 {
		runtime.GC()
		if now = usage(); used(now.live) <= limit {
			return nil
		}
	}
	return g.giveUp(&exhaustedError{what, memoryText(limit)})
}

// late looks at the time, in addition to what earlier builds took.
func (g *guard) late(what string, took time.Duration) error {
	g.mu.Lock()
	limit := buildTime + time.Duration(g.read)*timeShare
	over := g.spent+took > limit
	g.mu.Unlock()
	if !over {
		return nil
	}
	return g.giveUp(&exhaustedError{what, limit.Round(time.Second).String()})
}

func (g *guard) took(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spent += d
}

// inUse is how much of the heap is used, in bytes: by everything, and by what the last collection found in use.
type inUse struct{ objects, live uint64 }

func usage() inUse {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return inUse{samples[0].Value.Uint64(), samples[1].Value.Uint64()}
}

// guarded runs what is not in this program's hands. A panic of it is an error of its own; if it needs too much, or the
// context ends, it is left to itself: what it writes to is not to be read then.
func guarded[T any](ctx context.Context, g *guard, what string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var got result
		defer func() {
			if p := recover(); p != nil {
				got = result{err: &panicError{p}}
			}
			done <- got
		}()
		got.value, got.err = f()
	}()
	watch := time.NewTicker(watchInterval)
	defer watch.Stop()
	var none T
	var took time.Duration // counts while the program runs: on a busy computer that is less than the clock says
	for {
		select {
		case got := <-done:
			g.took(took)
			return got.value, got.err
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case <-watch.C:
			took += watchInterval
			if errors.Join(g.over(what), g.late(what, took)) != nil {
				return none, g.failure()
			}
		}
	}
}

// weigh is about what the objects of a build need once they are decoded. Text that they share counts as often.
func weigh(m resmap.ResMap) int64 {
	var sum int64
	for _, res := range m.Resources() {
		sum += weightOf(res.YNode())
	}
	return sum
}

// weightOfValue is about what a decoded value needs.
func weightOfValue(v any) int64 {
	switch v := v.(type) {
	case string:
		return nodeWeight + int64(len(v))
	case map[string]any:
		sum := int64(nodeWeight)
		for k, item := range v {
			sum += nodeWeight + int64(len(k)) + weightOfValue(item)
		}
		return sum
	case []any:
		sum := int64(nodeWeight)
		for _, item := range v {
			sum += weightOfValue(item)
		}
		return sum
	}
	return nodeWeight
}

func weightOf(n *yaml.Node) int64 {
	if n == nil {
		return 0
	}
	sum := int64(nodeWeight + len(n.Value))
	for _, c := range n.Content {
		sum += weightOf(c)
	}
	return sum
}
