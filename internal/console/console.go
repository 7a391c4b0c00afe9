// Package console writes the messages of a run for people: lines on stderr with an excerpt of the file that each is about,
// and live rows for the objects in progress. The caller passes the stream, the clock and the terminal.
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

// Rules for all lines that helmsrc writes to stderr: one line per statement,
// in lower case; errors first, their hints on separate lines after them;
// stdout can be read without them.

// Level is the level of a line, as --log-format json names it.
type Level string

// The levels of lines. A hint follows the line that it is about.
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

// SubjectOf returns the object of a finding.
func SubjectOf(f finding.Finding) Subject { return Subject{f.Kind, f.Namespace, f.Name} }

// ObjectSubject returns the subject for an object of the manifests.
func ObjectSubject(o *manifest.Object) Subject { return Subject{o.Kind, o.Namespace, o.Name} }

func (s Subject) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// Console writes the lines for people, and keeps the findings that it printed. The command creates the console of its run
// with New, and configures it once its flags are parsed. It is safe for concurrent use, except Configure.
type Console struct {
	mu      sync.Mutex
	w       io.Writer
	secrets *conceal.Values     // values that w replaces
	names   map[Subject]Subject // shown names of objects whose names come from Secrets
	live    *liveRows           // nil when rows are not repainted
	options Options

	findings []finding.Finding     // that were printed
	quiet    []finding.Finding     // that comments silence
	advised  map[finding.Code]bool // codes whose general advice was given
	divided  *divided              // nil where lines are about one cluster
	failures []failure             // that are not printed yet
}

// Options configure a console. The zero value prints text without colours and rows.
type Options struct {
	Verbosity int  // -1 with -q, 0, 1 and more with -v
	JSON      bool // each line is a JSON record
	Color     bool
	GitHub    bool // lines are read by GitHub Actions
	// Terminal reports the size of the terminal, and whether there is a terminal. Nil means that there is no terminal.
	Terminal func() (width, height int, ok bool)
	// Now returns the time of records.
	Now func() time.Time
	// Rows is nil if no rows are shown.
	Rows *Rows
}

// Rows configure how the live rows are repainted.
type Rows struct {
	Now   func() time.Time // the current time, even if records have a fixed one
	ASCII bool             // draw with characters that every terminal has
	// Foreground is false while another program has the terminal, whose prompt would be painted over. Nil means always true.
	Foreground func() bool
	// OnSuspension registers a function that is called when the user suspends the program; that function calls suspend.
	// Nil means that the program is never suspended.
	OnSuspension func(suspended func(suspend func()))
}

// New returns a console that writes to w.
func New(w io.Writer) *Console {
	secrets := conceal.New()
	return &Console{w: &concealing{w, secrets}, secrets: secrets, names: map[Subject]Subject{}}
}

// Configure sets the options. It must not be called while a line is written.
func (c *Console) Configure(o Options) {
	c.options, c.live = o, nil
	if o.Rows != nil {
		c.live = newLiveRows(c.w, o.Terminal, *o.Rows, o.Color)
	}
}

// Apart returns a console that prints errors only, and keeps its findings separate. It writes to the writer that wrap
// returns for the writer of c.
func (c *Console) Apart(wrap func(io.Writer) io.Writer) *Console {
	options := c.options
	options.Verbosity, options.Rows = -1, nil
	return &Console{w: wrap(c.w), secrets: c.secrets, names: map[Subject]Subject{}, options: options}
}

// JSON reports whether each line is a JSON record.
func (c *Console) JSON() bool { return c.options.JSON }

// Verbosity returns the verbosity of the options.
func (c *Console) Verbosity() int { return c.options.Verbosity }

// Secrets returns the values that are not shown.
func (c *Console) Secrets() *conceal.Values { return c.secrets }

// concealing replaces values of Secrets in whole lines.
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

// Hint prints advice about an object.
func (c *Console) Hint(s Subject, text string) { c.line(levelHint, s, text) }

// Warn prints a warning that belongs to no object.
func (c *Console) Warn(text string) { c.line(LevelWarning, Subject{}, text) }

// Info prints a line of the default verbosity.
func (c *Console) Info(s Subject, text string) { c.line(levelInfo, s, text) }

// Debug prints a line that is shown with -v only.
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
	if level != levelInfo && level != levelDebug && c.hold(func(in []string) {
		where := inClusters(in)
		if level == levelHint { // the line before it names the clusters
			where = ""
		}
		c.About(level, s, text+where, f)
	}, "line", level, s, text) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The caller has redacted the text where it knows of credentials. This redacts
	// values that are quoted from a manifest, as in a rejection.
	c.write(c.format(level, s, auth.RedactText(text), f))
}

// format returns a line; f is the finding that it is about, or zero.
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
	// indented, so that a line that starts with a level is always a line of helmsrc.
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

// Verbatim writes whole lines for programs, without changes.
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

// colorOf returns the escape code of a level.
func colorOf(level Level) string {
	return map[Level]string{LevelError: "31;1", levelHint: "36", LevelWarning: "33", levelNote: "36", levelDebug: "2"}[level]
}

// Printable drops control characters (a server's answer could hold terminal
// escapes) and characters that change the direction of writing. It keeps
// newlines and tabs.
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
