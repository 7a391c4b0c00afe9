// Package console writes what a run says to people: lines on stderr with an excerpt of the file that each is about,
// and live rows for what is in progress. The stream, the clock and the terminal are given to it.
package console

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Rules for everything that helmsrc writes to stderr: one line per statement,
// in lower case; errors first, their hints on lines of their own after them;
// nothing there is needed to read stdout.

// Level is that of a line, as --log-format json names it.
type Level string

// The levels of lines. A hint follows what it is about.
const (
	LevelError   Level = "error"
	LevelWarning Level = "warning"

	levelHint  Level = "hint"
	levelNote  Level = "note"
	levelInfo  Level = "info"
	levelDebug Level = "debug"
)

// Subject names the object that a line is about; the zero value names no object.
type Subject struct{ Kind, Namespace, Name string }

// SubjectOf is the object of a finding.
func SubjectOf(f finding.Finding) Subject { return Subject{f.Kind, f.Namespace, f.Name} }

// ObjectSubject is an object of manifests.
func ObjectSubject(o *manifest.Object) Subject { return Subject{o.Kind, o.Namespace, o.Name} }

func (s Subject) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// Console writes the lines for people, and keeps the findings that it printed. The command makes one for its run with
// New, and configures it once its flags are read; it ends with the process. It is safe for many goroutines.
type Console struct {
	mu      sync.Mutex
	w       io.Writer
	secrets *conceal.Values     // what w does not show
	names   map[Subject]Subject // how objects are called that are named by what is not shown
	live    *liveRows           // nil when rows are not repainted
	options Options

	findings []finding.Finding     // that were printed
	quiet    []finding.Finding     // that comments silence
	advised  map[finding.Code]bool // codes whose general advice was given
	divided  *divided              // nil where lines are about one cluster
	failures []failure             // that are not printed yet
}

// Options say how a console writes. The zero value has text without colours and rows.
type Options struct {
	Verbosity int  // -1 with -q, 0, 1 and more with -v
	JSON      bool // a record in each line
	Color     bool
	GitHub    bool // lines are read by GitHub Actions
	// Terminal reports the size of the terminal, and whether there is one. Nil means that there is none.
	Terminal func() (width, height int, ok bool)
	// Now is the time of records.
	Now func() time.Time
	// Rows is nil if no rows are shown.
	Rows *Rows
}

// Rows say how rows are repainted.
type Rows struct {
	Now   func() time.Time // that goes on, whatever the time of records is
	ASCII bool             // draw with characters that every terminal has
	// Foreground is false while another program has the terminal, whose prompt would be painted over. Nil is always true.
	Foreground func() bool
	// OnSuspension has a function called whenever the user suspends the program, which it does by what it is passed. Nil
	// is never.
	OnSuspension func(suspended func(suspend func()))
}

// New is a console that writes to w.
func New(w io.Writer) *Console {
	secrets := conceal.New()
	return &Console{w: &concealing{w, secrets}, secrets: secrets, names: map[Subject]Subject{}}
}

// Configure sets the options. Nothing may be written at the same time.
func (c *Console) Configure(o Options) {
	c.options, c.live = o, nil
	if o.Rows != nil {
		c.live = newLiveRows(c.w, o.Terminal, *o.Rows, o.Color)
	}
}

// Apart is a console that prints errors alone, and keeps what it found to itself. It writes to what wrap makes of the
// writer of c.
func (c *Console) Apart(wrap func(io.Writer) io.Writer) *Console {
	options := c.options
	options.Verbosity, options.Rows = -1, nil
	return &Console{w: wrap(c.w), secrets: c.secrets, names: map[Subject]Subject{}, options: options}
}

// JSON reports whether lines are records.
func (c *Console) JSON() bool { return c.options.JSON }

// Verbosity is that of the options.
func (c *Console) Verbosity() int { return c.options.Verbosity }

// Secrets are the values that are not shown.
func (c *Console) Secrets() *conceal.Values { return c.secrets }

// concealing keeps what comes from Secrets out of whole lines.
type concealing struct {
	w       io.Writer
	secrets *conceal.Values
}

func (c *concealing) Write(p []byte) (int, error) {
	_, err := io.WriteString(c.w, c.secrets.Text(string(p)))
	return len(p), err
}

// Fail prints an error that belongs to no object, with its hints.
func (c *Console) Fail(err error) { c.FailObject(Subject{}, err) }

// FailObject prints an error of an object, with its hints.
func (c *Console) FailObject(s Subject, err error) {
	c.line(LevelError, s, err.Error())
	for _, h := range finding.Hints(err) {
		c.line(levelHint, s, h)
	}
}

// Hint prints what can be done about an object.
func (c *Console) Hint(s Subject, text string) { c.line(levelHint, s, text) }

// Warn prints a warning that is about no object.
func (c *Console) Warn(text string) { c.line(LevelWarning, Subject{}, text) }

// Info prints what a run says without being asked.
func (c *Console) Info(s Subject, text string) { c.line(levelInfo, s, text) }

// Debug prints what a run says with -v.
func (c *Console) Debug(s Subject, text string) { c.line(levelDebug, s, text) }

// shown reports whether lines of a level are printed at the chosen verbosity.
func (c *Console) shown(level Level) bool {
	switch level {
	case LevelError, levelHint:
		return true
	case levelDebug, levelNote:
		return c.options.Verbosity > 0
	default:
		return c.options.Verbosity >= 0
	}
}

func (c *Console) line(level Level, s Subject, text string) {
	c.About(level, s, text, finding.Finding{})
}

// About prints a line about a finding.
func (c *Console) About(level Level, s Subject, text string, f finding.Finding) {
	if !c.shown(level) {
		return
	}
	if level != levelInfo && level != levelDebug && c.hold(func(where string) {
		if level == levelHint { // of what names the clusters
			where = ""
		}
		c.About(level, s, text+where, f)
	}, "line", level, s, text) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The caller has redacted the text where that was known to matter. This is
	// for values that are quoted from a manifest, as in a rejection.
	c.write(c.format(level, s, auth.RedactText(text), f))
}

// format writes a line; the finding is that which it is about, if any.
func (c *Console) format(level Level, s Subject, text string, f finding.Finding) string {
	s = c.Called(s)
	s.Namespace, s.Name, text = shortened(s.Namespace), shortened(s.Name), shortened(text)
	if c.options.JSON {
		return c.formatJSON(level, s, text, f)
	}
	if level != levelHint {
		text = coded(text, f.Code)
	}
	// A message may contain newlines (a YAML error, a server's answer). They are
	// indented, so that a line that starts with a level is always one of ours.
	text = strings.ReplaceAll(strings.TrimRight(Printable(text), "\n"), "\n", "\n  ")
	prefix := ""
	if level != levelInfo {
		prefix = c.paint(level) + " "
	}
	if s != (Subject{}) && level != levelHint {
		text = OneLine(s.String()) + ": " + text // a name that was rejected may contain anything
	}
	if cluster := c.cluster(); cluster != "" {
		text = OneLine(cluster) + ": " + text
	}
	return prefix + text + "\n"
}

func (c *Console) formatJSON(level Level, s Subject, text string, f finding.Finding) string {
	record := struct {
		Time      string `json:"time"`
		Level     Level  `json:"level"`
		Message   string `json:"msg"`
		Cluster   string `json:"cluster,omitempty"`
		Kind      string `json:"kind,omitempty"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name,omitempty"`
		Code      string `json:"code,omitempty"`
		File      string `json:"file,omitempty"`
		Line      int    `json:"line,omitempty"`
		Column    int    `json:"column,omitempty"`

		Blocks []string `json:"blocks,omitempty"`
	}{
		c.options.Now().UTC().Format(time.RFC3339), level, text, c.cluster(), s.Kind, s.Namespace, s.Name,
		string(f.Code), f.Pos.File, f.Pos.Line, f.Pos.Column, c.blocked(f.Blocks),
	}
	b, _ := json.Marshal(record) // strings always marshal
	line := string(b)
	if c.options.GitHub {
		line = strings.ReplaceAll(line, "##[", `##\u005b`) // see defuse
	}
	return line + "\n"
}

// Verbatim writes whole lines that programs read, not people.
func (c *Console) Verbatim(lines string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.w, lines)
}

func (c *Console) paint(level Level) string {
	label := string(level) + ":"
	if !c.options.Color {
		return label
	}
	return "\x1b[" + colorOf(level) + "m" + label + "\x1b[0m"
}

// colorOf is the escape code of a level.
func colorOf(level Level) string {
	return map[Level]string{LevelError: "31;1", levelHint: "36", LevelWarning: "33", levelNote: "36", levelDebug: "2"}[level]
}

// Printable drops control characters (a server's answer could hold terminal
// escapes) and those that turn the direction of writing, and keeps newlines and
// tabs.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}
