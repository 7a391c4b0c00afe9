package kustomize

import (
	"fmt"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
)

const (
	// baseMemory is how many bytes the builds of a run may keep. memoryShare is added for each byte that they read.
	baseMemory  = 160 << 20
	memoryShare = 40

	// baseWork is how much work the builds of a run may do. workShare is added for each byte that they read. A unit of work is
	// about the scan of a byte: the base is some ten seconds of a processor.
	baseWork  = 8 << 30
	workShare = 4 << 10

	// nodeWeight estimates the memory, in bytes, of a value besides its text.
	nodeWeight = 64

	// maxCopied is the limit, in bytes, for an object that patches and replacements copy into. An API server takes at most 3 MiB
	// of text, and the contents of objects of that size are not copied by patches.
	maxCopied = 2 << 20

	// scanWork is the work of scanning an object without changing it.
	scanWork = 1 << 10

	// readWork is the work of reading a file, byteWork that of each byte in it.
	readWork = 64 << 10
	byteWork = 64

	// keyWork is the work of comparing two keys of a mapping when kustomize resolves anchors.
	keyWork = 8
)

// Budget limits the builds of a run in proportion to the size of their input: their work, and the memory of their objects. Time and
// the heap limit what is not counted. It may be used by several goroutines.
type Budget struct {
	mu   sync.Mutex
	seen map[string]bool
	read int64 // bytes of different files
	work int64
	kept int64 // bytes of results that are kept
	took time.Duration
	err  error
	end  func(error)

	before uint64 // the heap when the run began, in bytes
}

// NewBudget returns the budget of a run. When it is exhausted, it calls end once.
func NewBudget(end func(error)) *Budget {
	return &Budget{seen: map[string]bool{}, end: end, before: heapSize("/memory/classes/heap/objects:bytes")}
}

// ExhaustedError is the error of a build that exceeds the budget of its run.
type ExhaustedError struct {
	what string // the name of the build
	need string
}

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("%s: the kustomize build was given up: it needs more than %s", e.what, e.need)
}

// Hint returns the usual causes.
func (e *ExhaustedError) Hint() string {
	return "look for replacements and patches that copy their own copies, for a base that is included many times, and for variables that are built from each other"
}

// Failure returns the error of the build that exceeded the budget, usually nil.
func (b *Budget) Failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Read counts a file that is read. Each file raises the limits once.
func (b *Budget) Read(what, path string, size int) error {
	b.mu.Lock()
	if !b.seen[path] {
		b.seen[path] = true
		b.read += int64(size)
	}
	b.mu.Unlock()
	return b.Work(what, readWork+byteWork*int64(size))
}

// Keep counts memory that the result of a build keeps.
func (b *Budget) Keep(what string, weight int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept += weight
	return b.holds(what, 0)
}

// Work counts work before it is done.
func (b *Budget) Work(what string, units int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.work += min(units, 1<<60)
	if limit := baseWork + workShare*b.read; b.work > limit {
		b.fail(what, "the work for what it reads")
	}
	return b.err
}

// Fits checks that the objects of a build, or temporary values, fit into memory beside the results that are kept.
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

// weight estimates the memory of an object, and the work of a pass over it: kustomize searches the fields of a mapping and the
// items of a list one by one.
type weight struct{ memory, work int64 }

func weightOf(n *yaml.Node) (w weight) {
	edit.Each(n, func(n *yaml.Node) {
		items := int64(len(n.Content))
		w.memory += nodeWeight + int64(len(n.Value))
		w.work += nodeWeight + int64(len(n.Value)) + items*items/4
	})
	return w
}

// WeightOf estimates the memory, in bytes, of a decoded value. Text that several values share counts each time.
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
