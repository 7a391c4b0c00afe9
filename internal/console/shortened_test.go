package console

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// TestConsoleShortensNames gives the console a name that no object can have: 200 characters of it are shown, once.
func TestConsoleShortensNames(t *testing.T) {
	var out bytes.Buffer
	name := strings.Repeat("a", 100_000)
	New(&out).Warn(`"` + name + `" is not valid, and "` + name + `" is long`)
	want := `warning: "` + name[:200] + `…" is not valid, and "` + name[:20] + "…\" is long\n"
	if out.String() != want {
		t.Errorf("got %d bytes, want %q", out.Len(), want)
	}
	legal := strings.Repeat("b", 253)
	if got := shortened(legal); got != legal {
		t.Errorf("a legal name became %q", got)
	}
}

// TestLines: which levels are printed at which verbosity, and the fields of their records.
func TestLines(t *testing.T) {
	object := Subject{"HelmChart", "apps", "podinfo"}
	say := func(c *Console) {
		c.Fail(finding.WithHint(errors.New("e\n1\n"), "h"))
		c.FailObject(object, errors.New("e2"))
		c.Hint(object, "h2")
		c.Warn("w")
		c.Info(Subject{"Cluster", "", "east"}, "i")
		c.Debug(object, "d")
		c.About(levelNote, object, "n", finding.Finding{Code: "HS001"})
		c.Verbatim("v\n")
	}
	const failures = "error: e\n  1\nhint: h\nerror: HelmChart apps/podinfo: e2\nhint: h2\n"
	const usual, more = "warning: w\nCluster east: i\n", "debug: HelmChart apps/podinfo: d\nnote: HelmChart apps/podinfo: n [HS001]\n"
	for verbosity, want := range map[int]string{-1: failures, 0: failures + usual, 1: failures + usual + more} {
		var out bytes.Buffer
		c := New(&out)
		c.Configure(Options{Verbosity: verbosity})
		if say(c); out.String() != want+"v\n" || c.Verbosity() != verbosity || c.JSON() {
			t.Errorf("verbosity %d: got\n%s\nwant\n%s", verbosity, &out, want)
		}
		var apart bytes.Buffer
		if say(c.Apart(func(io.Writer) io.Writer { return &apart })); apart.String() != failures+"v\n" {
			t.Errorf("apart: got\n%s", &apart)
		}
	}
	c := New(io.Discard)
	for _, rows := range []*Rows{{Now: time.Now}, nil} {
		if c.Configure(Options{Rows: rows}); (c.live != nil) != (rows != nil) {
			t.Errorf("rows are repainted: %v", c.live != nil)
		}
	}
	for level, want := range map[Level]string{LevelError: "31;1", levelHint: "36", LevelWarning: "33", levelDebug: "2"} {
		var out bytes.Buffer
		c := New(&out)
		c.Configure(Options{Verbosity: 1, Color: true})
		if c.line(level, Subject{}, "x"); out.String() != "\x1b["+want+"m"+string(level)+":\x1b[0m x\n" {
			t.Errorf("%s: %q", level, out.String())
		}
	}
	var out bytes.Buffer
	c = New(&out)
	c.Configure(Options{JSON: true, Now: func() time.Time { return time.Unix(0, 0) }})
	c.About(LevelWarning, object, "w\x1b[1m", finding.Finding{Code: "HS001", Pos: finding.Pos{File: "a", Line: 2, Column: 3}})
	want := `{"time":"1970-01-01T00:00:00Z","level":"warning","msg":"w\u001b[1m","kind":"HelmChart","namespace":"apps","name":"podinfo","code":"HS001","file":"a","line":2,"column":3}`
	if out.String() != want+"\n" {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
