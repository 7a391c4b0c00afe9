package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// Rules for everything that helmsrc writes to stderr: one line per statement,
// in lower case; errors first, their hints on lines of their own after them;
// nothing there is needed to read stdout.

// levels of a line, as --log-format json names them.
const (
	levelError = "error"
	levelHint  = "hint"
	levelWarn  = "warning"
	levelNote  = "note"
	levelInfo  = "info"
	levelDebug = "debug"
)

// subject names the object that a line is about; the zero value is none.
type subject struct{ kind, namespace, name string }

func (s subject) String() string {
	if s.namespace == "" {
		return s.kind + " " + s.name
	}
	return s.kind + " " + s.namespace + "/" + s.name
}

// console writes the lines for people. It is safe for many goroutines.
type console struct {
	mu      sync.Mutex
	w       io.Writer
	secrets *conceal.Values     // what w does not show
	names   map[subject]subject // how objects are called that are named by what is not shown
	now     func() time.Time
	live    *liveRows // nil when rows are not repainted

	verbosity int // -1 with -q, 0, 1 and more with -v
	json      bool
	color     bool
	github    bool                    // lines are read by GitHub Actions
	width     func() (int, int, bool) // of the terminal, if there is one

	findings []finding.Finding     // that were printed
	quiet    []finding.Finding     // that comments silence
	advised  map[finding.Code]bool // codes whose general advice was given
}

func newConsole(w io.Writer) *console {
	secrets := conceal.New()
	return &console{w: &concealing{w, secrets}, secrets: secrets, names: map[subject]subject{}}
}

// concealing keeps what comes from Secrets out of whole lines.
type concealing struct {
	w       io.Writer
	secrets *conceal.Values
}

func (c *concealing) Write(p []byte) (int, error) {
	_, err := io.WriteString(c.w, c.secrets.Text(string(p)))
	return len(p), err
}

func addConsoleFlags(fs *pflag.FlagSet) {
	fs.BoolP("quiet", "q", false, "print errors only")
	fs.CountP("verbose", "v", "print more: each request with -v, decisions as well with -vv (repeatable)")
	fs.String("log-format", "text", "`format` of stderr: text or json")
	choices(fs, "log-format", "text", "json")
	fs.Bool("no-progress", false, "no live rows on a terminal")
	fs.String("color", "auto", "`when` to use colour: auto, always, never (NO_COLOR is honoured)")
	choices(fs, "color", "auto", "always", "never")
}

// configure reads the flags of addConsoleFlags, whose values come from these origins.
func (c *console) configure(fs *pflag.FlagSet, from origins, env *Env) error {
	quiet, _ := fs.GetBool("quiet")
	verbose, _ := fs.GetCount("verbose")
	format, _ := fs.GetString("log-format")
	noProgress, _ := fs.GetBool("no-progress")
	color, _ := fs.GetString("color")
	if err := oneOf("log-format", format, "text", "json"); err != nil {
		return err
	}
	if err := oneOf("color", color, "auto", "always", "never"); err != nil {
		return err
	}
	if quiet && verbose > 0 {
		byFlag := from["quiet"] == "--quiet"
		if byFlag == (from["verbose"] == "--verbose") {
			return usagef("--quiet and --verbose exclude each other")
		}
		quiet = byFlag // what was typed wins over the environment and the file
	}
	c.verbosity = verbose
	if quiet {
		c.verbosity = -1
	}
	c.now = env.clock()
	c.github = env.Getenv("GITHUB_ACTIONS") == "true"
	c.json, c.width = format == "json", env.Terminal
	_, _, terminal := env.Terminal()
	c.color = color == "always" || color == "auto" && terminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
	if terminal && !noProgress && !quiet && !c.json && env.Getenv("TERM") != "dumb" {
		c.live = newLiveRows(c.w, env.Terminal, env.Now, c.color)
		c.live.foreground = env.Foreground
		c.live.ascii = notUTF8(env.Getenv)
	}
	return nil
}

// fail prints an error that belongs to no object, with its hints.
func (c *console) fail(err error) { c.failObject(subject{}, err) }

// failObject prints an error of an object, with its hints.
func (c *console) failObject(s subject, err error) {
	c.line(levelError, s, err.Error())
	for _, h := range finding.Hints(err) {
		c.line(levelHint, s, h)
	}
}

func (c *console) hint(s subject, text string)  { c.line(levelHint, s, text) }
func (c *console) warn(text string)             { c.line(levelWarn, subject{}, text) }
func (c *console) info(s subject, text string)  { c.line(levelInfo, s, text) }
func (c *console) debug(s subject, text string) { c.line(levelDebug, s, text) }

// shown reports whether lines of a level are printed at the chosen verbosity.
func (c *console) shown(level string) bool {
	switch level {
	case levelError, levelHint:
		return true
	case levelDebug, levelNote:
		return c.verbosity > 0
	default:
		return c.verbosity >= 0
	}
}

func (c *console) line(level string, s subject, text string) {
	c.about(level, s, text, finding.Finding{})
}

// about prints a line about a finding.
func (c *console) about(level string, s subject, text string, f finding.Finding) {
	if !c.shown(level) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The caller has redacted the text where that was known to matter. This is
	// for values that are quoted from a manifest, as in a rejection.
	c.write(c.format(level, s, reconcile.RedactText(text), f))
}

// format writes a line; the finding is that which it is about, if any.
func (c *console) format(level string, s subject, text string, f finding.Finding) string {
	s = c.called(s)
	s.namespace, s.name, text = shortened(s.namespace), shortened(s.name), shortened(text)
	if c.json {
		return c.formatJSON(level, s, text, f)
	}
	if level != levelHint {
		text = coded(text, f.Code)
	}
	// A message may hold newlines (a YAML error, a server's answer). They are
	// indented, so that a line that starts with a level is always one of ours.
	text = strings.ReplaceAll(strings.TrimRight(printable(text), "\n"), "\n", "\n  ")
	prefix := ""
	if level != levelInfo {
		prefix = c.paint(level) + " "
	}
	if s != (subject{}) && level != levelHint {
		text = oneLine(s.String()) + ": " + text // a name that was rejected may hold anything
	}
	return prefix + text + "\n"
}

func (c *console) formatJSON(level string, s subject, text string, f finding.Finding) string {
	record := struct {
		Time      string `json:"time"`
		Level     string `json:"level"`
		Message   string `json:"msg"`
		Kind      string `json:"kind,omitempty"`
		Namespace string `json:"namespace,omitempty"`
		Name      string `json:"name,omitempty"`
		Code      string `json:"code,omitempty"`
		File      string `json:"file,omitempty"`
		Line      int    `json:"line,omitempty"`
		Column    int    `json:"column,omitempty"`
	}{
		c.now().UTC().Format(time.RFC3339), level, text, s.kind, s.namespace, s.name,
		string(f.Code), f.Pos.File, f.Pos.Line, f.Pos.Column,
	}
	b, err := json.Marshal(record)
	if err != nil { // strings always marshal
		return fmt.Sprintf("{%q:%q}\n", "msg", text)
	}
	line := string(b)
	if c.github {
		line = strings.ReplaceAll(line, "##[", `##\u005b`) // see defuse
	}
	return line + "\n"
}

// verbatim writes whole lines that programs read, not people.
func (c *console) verbatim(lines string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.w, lines)
}

func (c *console) paint(level string) string {
	label := level + ":"
	if !c.color {
		return label
	}
	return "\x1b[" + colorOf(level) + "m" + label + "\x1b[0m"
}

// colorOf is the escape code of a level.
func colorOf(level string) string {
	return map[string]string{levelError: "31;1", levelHint: "36", levelWarn: "33", levelNote: "36", levelDebug: "2"}[level]
}

// printable drops control characters (a server's answer could hold terminal
// escapes) and those that turn the direction of writing, and keeps newlines and
// tabs.
func printable(s string) string {
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
