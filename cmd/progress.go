package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// repaintEvery is often enough to look alive and seldom enough not to flicker.
	repaintEvery = 100 * time.Millisecond
	// maxLiveRows keeps the picture smaller than the smallest usual terminal: rows
	// that scrolled away could not be repainted.
	maxLiveRows = 10
)

// liveRows repaints one row per object in flight at the bottom of a terminal.
// Lines that stay are printed above the rows. The console's lock guards above;
// the rows have their own, since the network reports bytes from many goroutines.
type liveRows struct {
	w        io.Writer
	terminal func() (int, bool)
	now      func() time.Time

	mu      sync.Mutex
	rows    []*liveRow
	painted int // rows on the screen now
	stop    chan struct{}
	stopped sync.WaitGroup
}

type liveRow struct {
	subject     subject
	began       time.Time
	done, total int64
	waitUntil   time.Time
	waitReason  string
}

func newLiveRows(w io.Writer, terminal func() (int, bool), now func() time.Time) *liveRows {
	return &liveRows{w: w, terminal: terminal, now: now}
}

// start begins repainting; the returned function ends it and clears the rows.
func (l *liveRows) start() (stop func()) {
	l.stop = make(chan struct{})
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
		defer l.mu.Unlock()
		l.rows = nil
		l.paint("")
	}
}

func (l *liveRows) add(s subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, &liveRow{subject: s, began: l.now(), total: -1})
}

func (l *liveRows) remove(s subject) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = slices.DeleteFunc(l.rows, func(r *liveRow) bool { return r.subject == s })
}

func (l *liveRows) update(s subject, change func(*liveRow)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rows {
		if r.subject == s {
			change(r)
		}
	}
}

// above prints a line that stays, over the rows.
func (l *liveRows) above(line string) { l.repaint(line) }

func (l *liveRows) repaint(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paint(line)
}

// paint writes everything in one call, so that no half-painted picture shows.
func (l *liveRows) paint(line string) {
	var b strings.Builder
	if l.painted > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.painted)
	}
	b.WriteString("\r\x1b[J")
	b.WriteString(line)
	width, _ := l.terminal()
	shown := l.rows[:min(len(l.rows), maxLiveRows)]
	for _, r := range shown {
		b.WriteString(truncate(r.text(l.now()), width-1))
		b.WriteByte('\n')
	}
	l.painted = len(shown)
	if more := len(l.rows) - len(shown); more > 0 {
		b.WriteString(truncate(fmt.Sprintf("… and %d more", more), width-1))
		b.WriteByte('\n')
		l.painted++
	}
	_, _ = io.WriteString(l.w, b.String())
}

func (r *liveRow) text(now time.Time) string {
	text := r.subject.String()
	switch {
	case r.waitUntil.After(now):
		text += fmt.Sprintf("  waiting %s: %s", r.waitUntil.Sub(now).Round(time.Second), r.waitReason)
	case r.done > 0 && r.total > 0:
		text += fmt.Sprintf("  %s of %s, %s/s", humanBytes(r.done), humanBytes(r.total), humanBytes(r.speed(now)))
	case r.done > 0:
		text += fmt.Sprintf("  %s, %s/s", humanBytes(r.done), humanBytes(r.speed(now)))
	default:
		text += "  …"
	}
	return text
}

// speed is the average since the row began, in bytes per second.
func (r *liveRow) speed(now time.Time) int64 {
	elapsed := now.Sub(r.began)
	if elapsed < repaintEvery {
		elapsed = repaintEvery
	}
	return int64(float64(r.done) / elapsed.Seconds())
}

// truncate cuts text to a number of columns, with an ellipsis.
func truncate(text string, columns int) string {
	if columns < 1 || utf8.RuneCountInString(text) <= columns {
		return text
	}
	runes := []rune(text)
	return string(runes[:columns-1]) + "…"
}

func humanBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, exponent := float64(n)/unit, 0
	for value >= unit && exponent < 3 {
		value /= unit
		exponent++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGT"[exponent])
}
