package console

import (
	"io"
	"slices"
	"sync"
	"time"
)

const (
	// repaintEvery is short enough to look alive, and long enough to cost almost
	// nothing.
	repaintEvery = 100 * time.Millisecond
	// speedOver is the time over which speed is measured.
	speedOver = 5 * time.Second
	// sampleEvery is the time between two samples of the bytes of a row.
	sampleEvery = 250 * time.Millisecond

	defaultColumns, defaultLines = 80, 24
)

// liveRows repaints one row per object in flight at the bottom of a terminal.
// Lines that stay are printed above the rows. The console's lock guards those lines;
// the rows have their own, since the network reports bytes from many goroutines.
type liveRows struct {
	Rows
	terminal func() (width, height int, ok bool)
	color    bool

	mu      sync.Mutex
	screen  screen
	running bool
	rows    []*liveRow
	sum     summary
	width   int // of the last frame
	names   int // columns of the widest name at that width so far, so that the states do not move

	stop    chan struct{}
	stopped sync.WaitGroup
}

// liveRow is an object in flight.
type liveRow struct {
	subject     Subject
	began       time.Time
	done, total int64
	samples     []sample
	waitUntil   time.Time
	rateLimited bool
	locked      bool // another process has the object
}

// sample is the number of bytes at a time.
type sample struct {
	at   time.Time
	done int64
}

// summary counts the objects of a run.
type summary struct {
	began             time.Time
	all, done, failed int
	transferred       int64 // bytes, of finished objects
}

func newLiveRows(w io.Writer, terminal func() (int, int, bool), rows Rows, color bool) *liveRows {
	return &liveRows{Rows: rows, terminal: terminal, color: color, screen: screen{w: w}}
}

// start begins repainting; the returned function ends it and clears the rows.
func (l *liveRows) start() (stop func()) {
	l.mu.Lock()
	l.running = true
	l.sum.began = l.Now()
	l.mu.Unlock()
	l.stop = make(chan struct{})
	if l.OnSuspension != nil {
		l.OnSuspension(l.suspended)
	}
	l.stopped.Go(func() {
		tick := time.NewTicker(repaintEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.repaint("")
			case <-l.stop:
				return
			}
		}
	})
	return func() {
		close(l.stop)
		l.stopped.Wait()
		l.mu.Lock()
		l.running, l.rows = false, nil
		l.mu.Unlock()
		l.repaint("")
	}
}

// expect sets how many objects the run will finish.
func (l *liveRows) expect(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum.all = n
}

func (l *liveRows) add(s Subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Now()
	l.rows = append(l.rows, &liveRow{subject: s, began: now, total: -1, samples: []sample{{now, 0}}})
}

// remove removes a row. Only an expected object is counted.
func (l *liveRows) remove(s Subject, expected, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = slices.DeleteFunc(l.rows, func(r *liveRow) bool {
		if r.subject == s {
			l.sum.transferred += r.done
		}
		return r.subject == s
	})
	if expected {
		l.sum.done++
	}
	if expected && failed {
		l.sum.failed++
	}
}

func (l *liveRows) update(s Subject, change func(*liveRow)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rows {
		if r.subject == s {
			change(r)
		}
	}
}

// repaint paints the rows, below text that stays.
func (l *liveRows) repaint(stays string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	width, height, ok := l.terminal()
	if !ok || width <= 0 {
		width = defaultColumns
	}
	if !ok || height <= 0 {
		height = defaultLines
	}
	var lines []string
	if l.running && (l.Foreground == nil || l.Foreground()) {
		lines = l.frame(width, height)
	}
	l.screen.paint(stays, lines, width)
}

// suspended clears the rows and shows the cursor while the program is suspended.
func (l *liveRows) suspended(suspend func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.screen.paint("", nil, l.screen.width)
	suspend()
}

// transfer records the progress of a transfer. A new attempt starts again at 0.
func (r *liveRow) transfer(done, total int64, now time.Time) {
	if done < r.done {
		r.samples = append(r.samples[:0], sample{now, done})
	}
	r.done, r.total = done, total
}

// speed returns the speed of the last seconds, in bytes per second.
func (r *liveRow) speed(now time.Time) int64 {
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= speedOver {
		r.samples = r.samples[1:]
	}
	if last := r.samples[len(r.samples)-1]; now.Sub(last.at) >= sampleEvery {
		r.samples = append(r.samples, sample{now, r.done})
	}
	first := r.samples[0]
	elapsed := max(now.Sub(first.at), repaintEvery)
	return int64(float64(r.done-first.done) / elapsed.Seconds())
}

// active reports whether the row shows a transfer or a wait. Other rows are in the queue.
func (r *liveRow) active(now time.Time) bool { return r.done > 0 || r.locked || r.waitUntil.After(now) }
