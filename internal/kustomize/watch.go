package kustomize

import (
	"context"
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	// baseTime is how long the builds of a run may take. timeShare is added for each byte that they read. That is about twice
	// the time of the work that a Budget allows, so only work that is not counted takes longer.
	baseTime  = 20 * time.Second
	timeShare = 10 * time.Microsecond

	// heapFactor is how much larger than the counted memory the heap may be.
	heapFactor = 2

	// watchInterval is how often the time and the heap of a build are checked.
	watchInterval = 5 * time.Millisecond
)

// running has an item while a build runs, which may be one that was left: the schema of kyaml belongs to the process.
var running = make(chan struct{}, 1)

// watched calls f, after an earlier f has returned. If that takes too long, needs too much memory, or the context ends, watched returns
// without waiting for f, which has a context that has ended: the code of kustomize cannot be stopped, so the program should end soon.
func watched[T any](ctx context.Context, b *Budget, what string, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil { // an earlier call may still run
		return none, context.Cause(ctx)
	}
	own, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan result, 1)
	go func() {
		select {
		case running <- struct{}{}:
		case <-own.Done():
			return
		}
		value, err := Guard(func() (T, error) { return f(own) })
		<-running
		done <- result{value, err}
	}()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case r := <-done:
			return r.value, r.err
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case <-ticker.C: // a busy machine drops ticks, so that a build has more time there
			if err := b.tick(what); err != nil {
				return none, err
			}
		}
	}
}

// tick counts an interval of a build, and checks the time of all builds and the heap.
func (b *Budget) tick(what string) error {
	b.mu.Lock()
	b.took += watchInterval
	late := b.took > baseTime+time.Duration(b.read)*timeShare
	limit := b.before + heapFactor*uint64(baseMemory+memoryShare*b.read) //nolint:gosec // not negative
	b.mu.Unlock()
	switch {
	case late:
		return b.exhausted(what, "the time for what it reads")
	case large(limit):
		return b.exhausted(what, "the memory for what it reads")
	}
	return nil
}

// large reports whether the heap is larger than a limit. Garbage does not count.
func large(limit uint64) bool {
	if heapSize("/memory/classes/heap/objects:bytes") <= limit {
		return false
	}
	runtime.GC()
	return heapSize("/gc/heap/live:bytes") > limit
}

func heapSize(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
