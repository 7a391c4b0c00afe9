package console

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
)

// picture has live rows on a terminal, at a fixed time.
type picture struct {
	*liveRows
	vt *vt
	at time.Time
}

func newPicture(t *testing.T, width, height, objects int) *picture {
	p := &picture{vt: newVT(t, width, height), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.liveRows = newLiveRows(p.vt, func() (int, int, bool) { return p.vt.size() }, Rows{Now: func() time.Time { return p.at }}, false)
	p.running, p.sum.began = true, p.at
	p.expect(objects)
	return p
}

func (p *picture) pass(d time.Duration) { p.at = p.at.Add(d) }

func (p *picture) transfer(s Subject, done, total int64) {
	p.update(s, func(r *liveRow) { r.transfer(done, total, p.at) })
}

func (p *picture) wait(s Subject, d time.Duration, rateLimited bool) {
	p.update(s, func(r *liveRow) { r.waitUntil, r.rateLimited = p.at.Add(d), rateLimited })
}

func (p *picture) end() {
	p.running, p.rows = false, nil
	p.repaint("")
}

func chartNamed(name string) Subject { return Subject{"HelmChart", "apps", name} }

func (p *picture) want(t *testing.T, want string) {
	t.Helper()
	if got, want := p.vt.screen(), strings.TrimSpace(want); got != want {
		t.Errorf("the screen shows\n%s\nwant\n%s", got, want)
	}
}

// TestFrames has the same moment of a run on three terminals.
func TestFrames(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string
	}{
		{40, `
HelmRepository apps/repo: stored
apps/podinfo         30%, 150.0 KiB/s
apps/backend         100.0 KiB
apps/limited         rate limited, 12s
apps/broken          again in 3s
apps/very…a-chart-1  … 2s
1 of 9 done, 1 failed, 5 in progress
`},
		{80, `
HelmRepository apps/repo: stored
HelmChart apps/podinfo                 300.0 KiB of 1000.0 KiB, 150.0 KiB/s
HelmChart apps/backend                 100.0 KiB, 50.0 KiB/s
HelmChart apps/limited                 rate limited by the server, again in 12s
HelmChart apps/broken                  failed, again in 3s
HelmChart apps/ver…-name-of-a-chart-1  … 2s
1 of 9 done, 1 failed, 5 in progress, 2s, 400.0 KiB, 200.0 KiB/s
`},
		{200, `
HelmRepository apps/repo: stored
HelmChart apps/podinfo                      ━━━━━━──────────────  300.0 KiB of 1000.0 KiB, 150.0 KiB/s
HelmChart apps/backend                      100.0 KiB, 50.0 KiB/s
HelmChart apps/limited                      rate limited by the server, again in 12s
HelmChart apps/broken                       failed, again in 3s
HelmChart apps/very-long-name-of-a-chart-1  … 2s
1 of 9 done, 1 failed, 5 in progress, 2s, 400.0 KiB, 200.0 KiB/s
`},
	} {
		t.Run(fmt.Sprint(test.width), func(t *testing.T) {
			p := newPicture(t, test.width, 24, 9)
			for _, name := range []string{"gone", "podinfo", "backend", "limited", "broken", "very-long-name-of-a-chart-1"} {
				p.add(chartNamed(name))
			}
			p.repaint("")
			p.remove(chartNamed("gone"), true, true)
			p.repaint("HelmRepository apps/repo: stored\n")
			p.pass(2 * time.Second)
			p.transfer(chartNamed("podinfo"), 300<<10, 1000<<10)
			p.transfer(chartNamed("backend"), 100<<10, -1)
			p.wait(chartNamed("limited"), 11500*time.Millisecond, true)
			p.wait(chartNamed("broken"), 3*time.Second, false)
			p.repaint("")
			p.want(t, test.want)
			if !p.vt.hidden {
				t.Error("the cursor is shown")
			}
			p.end()
			p.want(t, "HelmRepository apps/repo: stored")
			if p.vt.hidden {
				t.Error("the cursor stays hidden")
			}
		})
	}
}

// TestCountdown counts down to 1 and continues with the transfer.
func TestCountdown(t *testing.T) {
	p := newPicture(t, 80, 24, 1)
	p.add(chartNamed("a"))
	p.wait(chartNamed("a"), 2500*time.Millisecond, true)
	var seen []string
	for range 9 {
		p.repaint("")
		seen = append(seen, strings.TrimPrefix(p.vt.screen(), "HelmChart apps/a  "))
		p.pass(400 * time.Millisecond)
	}
	for i, want := range []string{"3s", "3s", "2s", "2s", "1s", "1s", "1s"} {
		if want = "rate limited by the server, again in " + want; seen[i] != want {
			t.Errorf("frame %d says %q, want %q", i, seen[i], want)
		}
	}
	if last := seen[len(seen)-1]; last != "… 3s" {
		t.Errorf("after the wait it says %q", last)
	}
	p.transfer(chartNamed("a"), 1<<10, -1)
	p.repaint("")
	p.want(t, "HelmChart apps/a  1.0 KiB, 284 B/s")
}

// TestSpeed goes by the last seconds, and a new attempt by itself.
func TestSpeed(t *testing.T) {
	p := newPicture(t, 80, 24, 1)
	p.add(chartNamed("a"))
	for i := range 100 { // a fast beginning, then nothing
		p.transfer(chartNamed("a"), min(int64(i)*1000, 10_000), -1)
		p.repaint("")
		p.pass(100 * time.Millisecond)
	}
	p.want(t, "HelmChart apps/a  9.8 KiB, 0 B/s")
	p.transfer(chartNamed("a"), 0, -1)
	p.pass(time.Second)
	p.transfer(chartNamed("a"), 500, -1)
	p.repaint("")
	p.want(t, "HelmChart apps/a  500 B, 500 B/s")
}

// TestFrameOfManyObjects has 200 objects at the same time on ten lines: nothing scrolls away, and those where something
// happens are shown.
func TestFrameOfManyObjects(t *testing.T) {
	p := newPicture(t, 60, 10, 200)
	for i := range 200 {
		p.add(chartNamed(fmt.Sprintf("chart-%03d", i)))
	}
	p.repaint("")
	p.transfer(chartNamed("chart-150"), 1<<20, 2<<20)
	p.wait(chartNamed("chart-199"), 5*time.Second, true)
	p.repaint("a line that stays\n")
	p.want(t, `
a line that stays
apps/chart-000  …
apps/chart-001  …
apps/chart-002  …
apps/chart-003  …
apps/chart-004  …
apps/chart-150  50%, 10.0 MiB/s
apps/chart-199  rate limited, 5s
0 of 200 done, 200 in progress, 1.0 MiB, 10.0 MiB/s
`)
	for i := range 200 {
		p.remove(chartNamed(fmt.Sprintf("chart-%03d", i)), true, false)
		p.repaint("")
	}
	p.end()
	if got := p.vt.everything(); got != "a line that stays" {
		t.Errorf("left behind:\n%s", got)
	}
}

// TestFrameInTinyTerminals checks only for lines that wrap, and rows that scroll away.
func TestFrameInTinyTerminals(t *testing.T) {
	for width := 1; width < 30; width++ {
		for height := 1; height < 5; height++ {
			p := newPicture(t, width, height, 9)
			for i := range 9 {
				p.add(chartNamed(fmt.Sprint("chart-", i)))
				p.transfer(chartNamed(fmt.Sprint("chart-", i)), 1000, 2000)
				p.repaint("")
			}
			for _, row := range p.vt.rows {
				if row.wrapped {
					t.Fatalf("%dx%d: a line wraps:\n%s", width, height, p.vt.screen())
				}
			}
			p.end()
			if got := p.vt.everything(); got != "" && height > 1 {
				t.Fatalf("%dx%d: left behind:\n%s", width, height, got)
			}
		}
	}
}

// TestRowsSuspended has the user look at something else in the middle.
func TestRowsSuspended(t *testing.T) {
	p := newPicture(t, 40, 10, 2)
	p.add(chartNamed("a"))
	p.repaint("")
	rows := p.vt.screen()
	p.suspended(func() {
		if got := p.vt.screen(); got != "" || p.vt.hidden {
			t.Errorf("while it is aside, with the cursor hidden: %t\n%s", p.vt.hidden, got)
		}
		_, _ = io.WriteString(p.vt, "$ fg\n")
	})
	p.repaint("")
	p.want(t, "$ fg\n"+rows)
	if !p.vt.hidden {
		t.Error("the cursor is not hidden again")
	}
	p.end()
	p.suspended(func() {})
	p.want(t, "$ fg")
}

// TestBackground leaves the terminal to the program that has it, except for lines that stay.
func TestBackground(t *testing.T) {
	p := newPicture(t, 40, 10, 2)
	ours := true
	p.Foreground = func() bool { return ours }
	p.add(chartNamed("a"))
	p.repaint("")
	rows := p.vt.screen()
	ours = false
	p.repaint("")
	p.repaint("a line\n")
	if p.want(t, "a line"); p.vt.hidden {
		t.Error("the cursor is hidden")
	}
	ours = true
	p.repaint("")
	p.want(t, "a line\n"+rows)
}

// TestPaintsOnlyChanges counts the writes of frames.
func TestPaintsOnlyChanges(t *testing.T) {
	p := newPicture(t, 80, 24, 20)
	for i := range 20 {
		p.add(chartNamed(fmt.Sprint("chart-", i)))
	}
	p.repaint("")
	writes, bytes := p.vt.writes, p.vt.bytes
	p.repaint("")
	if p.vt.writes != writes {
		t.Error("a frame that is as before was written")
	}
	p.wait(chartNamed("chart-3"), time.Minute, false)
	p.repaint("")
	if n := p.vt.writes - writes; n != 1 {
		t.Errorf("%d writes for one frame", n)
	}
	if n := p.vt.bytes - bytes; n > 120 {
		t.Errorf("%d bytes written for a line that changed", n)
	}
	if !strings.Contains(p.vt.screen(), "HelmChart apps/chart-3   failed, again in 1m0s\n") {
		t.Errorf("the screen shows\n%s", p.vt.screen())
	}
}

// TestNamesInRows has names that no API server would take, and that would move the cursor.
func TestNamesInRows(t *testing.T) {
	p := newPicture(t, 60, 24, 3)
	p.add(chartNamed("a\x1b[2Jb\nc\rd\te\u009b1mf\u202eg"))
	p.add(chartNamed("図表図表図表図表図表図表図表図表図表図表図表"))
	p.add(chartNamed("e\u0301")) // an accent of its own
	p.repaint("")
	p.want(t, `
apps/a[2Jbcde1mfg                        …
apps/図表図表図表図…表図表図表図表図表   …
apps/e                                   …
0 of 3 done, 3 in progress
`)
}

// TestNothingIsLeft makes random moves, and expects that only the permanent text stays.
func TestNothingIsLeft(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := newPicture(t, 45+random.IntN(100), 3+random.IntN(20), 100)
		var stay []string
		say := func(text string) {
			stay = append(stay, text)
			p.repaint(text + "\n")
		}
		say("$ helmsrc fetch")
		var names []Subject
		for i := range 200 {
			switch action := random.IntN(10); {
			case action < 3:
				names = append(names, chartNamed(fmt.Sprint(strings.Repeat("x", random.IntN(60)), i)))
				p.add(names[len(names)-1])
			case action < 5 && len(names) > 0:
				n := random.IntN(len(names))
				p.remove(names[n], true, random.IntN(4) == 0)
				names = slices.Delete(names, n, n+1)
			case action < 8 && len(names) > 0:
				p.transfer(names[random.IntN(len(names))], random.Int64N(1<<30), random.Int64N(1<<30))
			case action == 8:
				say(strings.Repeat(fmt.Sprint("line ", i, " "), 1+random.IntN(12)) + ".")
			case action == 9 && i%7 == 0:
				say(fmt.Sprintf("three\nlines\nof %d", i))
			}
			p.pass(time.Duration(random.IntN(500)) * time.Millisecond)
			p.repaint("")
		}
		p.end()
		if got, want := p.vt.everything(), strings.Join(stay, "\n"); got != want {
			t.Fatalf("seed %d, %dx%d: left\n%s\nwant\n%s", seed, p.vt.width, p.vt.height, got, want)
		}
	}
}

// TestResize makes the window narrower and wider under the rows.
func TestResize(t *testing.T) {
	p := newPicture(t, 120, 24, 3)
	p.repaint("a line that stays\n")
	for _, name := range []string{"one", "two", "three"} {
		p.add(chartNamed(name))
		p.transfer(chartNamed(name), 1<<20, 4<<20)
	}
	p.repaint("")
	for _, width := range []int{40, 25, 200, 60, 100, 33} {
		p.vt.resize(width, 24)
		p.repaint("")
		if lines := strings.Split(p.vt.screen(), "\n"); len(lines) != 5 || lines[0] != "a line that stays" || !strings.HasPrefix(lines[4], "0 of 3 done") {
			t.Errorf("%d columns:\n%s", width, p.vt.screen())
		}
	}
	p.end()
	p.want(t, "a line that stays")
}

// TestColours looks at a frame's escapes, which the terminal of the other tests does not.
func TestColours(t *testing.T) {
	p := newPicture(t, 120, 24, 2)
	p.color = true
	p.add(chartNamed("one"))
	p.add(chartNamed("two"))
	p.transfer(chartNamed("one"), 1<<20, 4<<20)
	p.wait(chartNamed("two"), time.Second, true)
	want := []string{
		"HelmChart apps/one  \x1b[36m━━━━━\x1b[0m\x1b[2m───────────────\x1b[0m  \x1b[2m1.0 MiB of 4.0 MiB, 10.0 MiB/s\x1b[0m",
		"HelmChart apps/two  \x1b[33mrate limited by the server, again in 1s\x1b[0m",
		"\x1b[2m0 of 2 done, 2 in progress, 1.0 MiB, 10.0 MiB/s\x1b[0m",
	}
	if got := p.frame(120, 24); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	p.repaint("")
	p.vt.resize(50, 24) // escapes take no columns
	p.repaint("")
	p.end()
	p.want(t, "")
}

// TestFrameInASCII: not every terminal shows more than ASCII.
func TestFrameInASCII(t *testing.T) {
	now := time.Now()
	l := newLiveRows(io.Discard, nil, Rows{Now: func() time.Time { return now }, ASCII: true}, false)
	l.add(Subject{"HelmChart", "default", "a-name-that-is-much-too-long-to-be-shown-as-a-whole-in-a-row"})
	l.update(l.rows[0].subject, func(r *liveRow) { r.transfer(1, 2, now) })
	for _, line := range l.frame(wideColumns+1, 10) {
		for _, r := range line {
			if r > unicode.MaxASCII {
				t.Fatalf("%q in %q", r, line)
			}
		}
	}
}
