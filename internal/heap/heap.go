// Package heap spares short runs the collection of a heap with little garbage. It changes when the collector runs
// and nothing else.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// floor is the size of a heap, in bytes, that is not collected again. Whatever the program does, it needs a few times as
	// much for its code and its tables.
	floor = 32 << 20

	// first is the size, in bytes, at which the heap is collected for the first time. Where a run fits in between, most of what it
	// has allocated is garbage by then, and one collection costs less than the memory that it gives back is worth.
	first = 20 << 20

	// early is how much the heap may grow until then, in percent of the 4 MiB that are the runtime's least, and most how much it
	// may grow later.
	early = first / (4 << 20) * 100
	most  = floor / (4 << 20) * 100

	// large is the size of what is in use, in bytes, from which the heap grows by sparing percent only: runs that keep so much
	// are about thousands of objects, allocate a few times what they keep, and take less than a tenth longer.
	large   = 40 << 20
	sparing = 50

	// huge is the size, in bytes, from which the heap grows by leanest percent only. Nothing but tens of thousands of objects, or input
	// that is meant to fill the memory, keeps so much in use.
	huge    = 192 << 20
	leanest = 20

	// runtimeDefault is the percentage without a GOGC in the environment.
	runtimeDefault = 100
)

// usual is the percentage that the runtime began with. It is read, and replaced, before nearly all other packages are
// initialised, because their tables are some 6 MiB and stay: collecting them twice on the way to main took a third of
// the time to get there. Nothing in main could come early enough, and no other package needs to know.
var usual = debug.SetGCPercent(early)

// Adapt has the collector go by the size of the heap from its first collection on, or at once by what the environment
// says.
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

// percentFor lets the heap grow to the floor, or to twice what is in use; a large one by half, and a huge one by a fifth.
func percentFor(live uint64) int {
	switch {
	case live >= huge:
		return leanest
	case live >= large:
		return sparing
	}
	return int(min(max(floor*100/max(live, 1), runtimeDefault+100)-100, most))
}

// live is what the last collection left, in bytes.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
