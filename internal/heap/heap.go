// Package heap saves short runs the collection of a heap with little garbage. It only changes when the collector
// runs.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// floor is the size of a heap, in bytes, below which it is not collected again. The program always needs a few times as
	// much for its code and its tables.
	floor = 32 << 20

	// first is the size, in bytes, at which the heap is collected for the first time. In a run between first and floor, most of the
	// heap is garbage by then, and one collection costs less than the memory that it frees is worth.
	first = 20 << 20

	// early is how much the heap may grow until then, in percent of the runtime's minimum of 4 MiB, and most is how much it
	// may grow later.
	early = first / (4 << 20) * 100
	most  = floor / (4 << 20) * 100

	// headroom is how much a heap above floor may grow, in bytes: as much as a run over thousands of objects can spare in 192 MiB.
	headroom = 40 << 20

	// leanest is how much it may always grow, in percent.
	leanest = 20

	// runtimeDefault is the percentage without GOGC in the environment.
	runtimeDefault = 100
)

// usual is the percentage at the start of the process. It is read, and replaced, before nearly all other packages are
// initialised, because their tables are some 6 MiB and stay: collecting them twice before main took a third of
// the time until main. Code in main would be too late, and no other package needs to know.
var usual = debug.SetGCPercent(early)

// Adapt makes the collector follow the size of the heap from its first collection on. If the environment sets GOGC, it
// applies that setting instead.
func Adapt() {
	if usual != runtimeDefault {
		debug.SetGCPercent(usual)
		return
	}
	afterCollection(func() { debug.SetGCPercent(percentFor(live())) })
}

// afterCollection calls f after each collection.
func afterCollection(f func()) {
	runtime.AddCleanup(new([64]byte), func(f func()) {
		f()
		afterCollection(f)
	}, f)
}

// percentFor lets the heap grow to the floor, or by as much as is live, up to headroom; a huge heap by a fifth.
func percentFor(live uint64) int {
	growth := max(min(live, headroom), max(live, floor)-live)
	return int(min(max(growth*100/max(live, 1), leanest), most))
}

// live returns the size of the heap after the last collection, in bytes.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
