package kustomize

import (
	"fmt"
	"sync"

	"go.yaml.in/yaml/v3"
)

const (
	// baseMemory is how many bytes the builds of a run may keep, and memoryShare how many more for each byte that they read.
	baseMemory  = 160 << 20
	memoryShare = 40

	// baseWork is how much work the builds of a run may do, and workShare how much more for each byte that they read. A unit
	// is about a byte that is looked at: the base is some ten seconds of a processor.
	baseWork  = 8 << 30
	workShare = 4 << 10

	// nodeWeight is about what a value needs besides its text, in bytes.
	nodeWeight = 64

	// maxCopied bounds what patches and replacements that copy may make of one object, in bytes. An API server takes no more
	// than 3 MiB of text, and objects of that size hold what no patch copies.
	maxCopied = 2 << 20

	// scanWork is the work of looking at an object without changing it.
	scanWork = 1 << 10

	// readWork and byteWork are the work of reading a file, and each byte of it.
	readWork = 64 << 10
	byteWork = 64

	// keyWork is the work of comparing two keys of a mapping where kustomize resolves anchors.
	keyWork = 8
)

// Budget bounds what the builds of a run need, in proportion to what they read: the files that they read, the work that they
// do, and the memory that their objects need. It may be used by several goroutines.
type Budget struct {
	mu   sync.Mutex
	seen map[string]bool
	read int64 // bytes of different files
	work int64
	kept int64 // bytes of what remains of the builds
	err  error
	end  func(error)
}

// NewBudget returns the budget of a run. When it is exhausted, end is called, once.
func NewBudget(end func(error)) *Budget { return &Budget{seen: map[string]bool{}, end: end} }

// ExhaustedError is a build that needs more than the budget of its run.
type ExhaustedError struct {
	what string // is built
	need string
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("%s: the kustomize build was given up: it needs more than %s", e.what, e.need)
}

// Hint says what such builds have in common.
func (e *ExhaustedError) Hint() string {
	return "look for replacements and patches that copy their own copies, for a base that is included many times, and for variables that are built from each other"
}

// Failure returns the error of the build that needed more than there was; nil is the rule.
func (b *Budget) Failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Read counts a file that is read. What the builds may need grows with each file once.
func (b *Budget) Read(what, path string, size int) error {
	b.mu.Lock()
	if !b.seen[path] {
		b.seen[path] = true
		b.read += int64(size)
	}
	b.mu.Unlock()
	return b.Work(what, readWork+byteWork*int64(size))
}

// Keep counts what remains of a build.
func (b *Budget) Keep(what string, weight int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept += weight
	return b.holds(what, 0)
}

// Work counts work that is about to be done.
func (b *Budget) Work(what string, units int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work += min(units, 1<<60)
	if limit := baseWork + workShare*b.read; b.work > limit {
		b.fail(what, "the work for what it reads")
	}
	return b.err
}

// Fits checks that the objects of a build, or what is made of a text for a while, fit in beside what remains of builds.
func (b *Budget) Fits(what string, weight int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.holds(what, weight)
}

func (b *Budget) holds(what string, weight int64) error {
	if limit := baseMemory + memoryShare*b.read; b.kept+weight > limit {
		b.fail(what, fmt.Sprintf("%d MiB", limit>>20))
	}
	return b.err
}

func (b *Budget) exhausted(what, need string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail(what, need)
	return b.err
}

func (b *Budget) fail(what, need string) {
	if b.err == nil {
		b.err = &ExhaustedError{what, need}
		b.end(b.err)
	}
}

// weight is about what an object needs in memory, and the work of going through it: kustomize finds the fields of a mapping and
// the items of a list one after the other.
type weight struct{ memory, work int64 }

func (w *weight) add(n *yaml.Node) {
	if n == nil {
		return
	}
	w.memory += nodeWeight + int64(len(n.Value))
	w.work += nodeWeight + int64(len(n.Value))
	items := int64(len(n.Content))
	w.work += items * items / 4
	for _, c := range n.Content {
		w.add(c)
	}
}

func weightOf(n *yaml.Node) weight {
	var w weight
	w.add(n)
	return w
}

// WeightOf is about what a decoded value needs in memory, in bytes. Text that values share counts as often.
func WeightOf(v any) int64 {
	switch v := v.(type) {
	case string:
		return nodeWeight + int64(len(v))
	case map[string]any:
		sum := int64(nodeWeight)
		for k, item := range v {
			sum += nodeWeight + int64(len(k)) + WeightOf(item)
		}
		return sum
	case []any:
		sum := int64(nodeWeight)
		for _, item := range v {
			sum += WeightOf(item)
		}
		return sum
	}
	return nodeWeight
}
