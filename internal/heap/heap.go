// Package heap spares short runs the collection of a heap that hardly holds garbage. It changes when the collector runs
// and nothing else.
package heap

import (
	"runtime"
	"runtime/debug"
)

// early is how much the heap may grow until it is collected for the first time, in percent. With the runtime's least
// heap of 4 MiB that is at 16 MiB.
const early = 400

// usual is the percentage that the runtime began with. It is read, and replaced, before nearly all other packages are
// initialised, because their tables are some 6 MiB and stay: collecting them twice on the way to main took a third of the
// time to get there. Nothing in main could come early enough, and no other package needs to know.
var usual = debug.SetGCPercent(early)

// runtimeDefault is the percentage without a GOGC in the environment.
const runtimeDefault = 100

// Settle has the collector run as usual from its first collection on, or at once if the environment says how often.
func Settle() {
	if usual != runtimeDefault {
		debug.SetGCPercent(usual)
		return
	}
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
}
