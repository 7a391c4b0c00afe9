// Package report writes the findings of a run in the formats of other programs: code scanning, test results, annotations,
// pages for people. It judges nothing and opens no file.
package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/outline"
	"github.com/helmsrc/helmsrc/internal/plan"
)

// Run holds the content of the reports of a run. Files are relative to the root of the repository, with forward slashes; files
// outside of it are absolute. It holds no secret.
type Run struct {
	Command, Version string
	Started          time.Time
	Duration         time.Duration
	Findings         []finding.Finding
	Silenced         []finding.Finding // by comments
	ListSilenced     bool              // list them in formats that can mark them; else they are counted at most
	Objects          []Object
	Count            map[string]int // objects by state; failed ones need not be among Objects
	Broken           bool           // it failed before the first object
	Validates        bool           // objects are valid or invalid, as they are not applied
	Plan             *plan.Plan     // nil unless the run made one
	Outline          []*outline.Node
	Outdated         []Outdated // charts with newer versions, if the run lists them

	omitted  int // findings that were too many
	silenced int // findings, listed or not
}

// Object is the outcome of one object.
type Object struct {
	Cluster    string       `json:"cluster,omitempty"` // if there are several
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Namespace  string       `json:"namespace,omitempty"`
	Name       string       `json:"name"`
	Pos        manifest.Pos `json:"place,omitzero"`
	State      string       `json:"state"` // one of the constants below
	Reason     string       `json:"reason,omitempty"`
	Message    string       `json:"message,omitempty"`
	Version    string       `json:"version,omitempty"`
	Revision   string       `json:"revision,omitempty"`
	Digest     string       `json:"digest,omitempty"`
	Path       string       `json:"path,omitempty"`

	Duration  time.Duration  `json:"-"`
	Component *Component     `json:"-"` // nil unless a bill of materials is wanted
	BlockedBy finding.Object `json:"-"` // of an object in that state
}

// Outdated is a chart in use, with its published versions.
type Outdated struct {
	Cluster   string `json:"cluster,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Chart     string `json:"chart"`
	Current   string `json:"current"`
	Wanted    string `json:"wanted"`
	Latest    string `json:"latest"`

	Versions []PublishedVersion `json:"-"` // the newest first
}

// PublishedVersion is a version with the time of its publication, zero if unknown.
type PublishedVersion struct {
	Version string
	Created time.Time
}

// The states of an object.
const (
	StateReady       = "ready"
	StateResolved    = "resolved" // to a version or chart: later steps need a fetch, or a cluster
	StateVerified    = "verified"
	StateFailed      = "failed"
	StateBlocked     = "blocked" // by the failure of another object
	StateSuspended   = "suspended"
	StateInterrupted = "interrupted"
)

const (
	// maxFindings is the number of findings that GitHub shows of a SARIF file.
	maxFindings = 5000
	// maxText is the limit, in bytes, of a single text, which may be the answer of a server.
	maxText = 4 << 10
	// home is the URL of the program and its documentation.
	home = "https://github.com/helmsrc/helmsrc"
)

// format is an output format of runs. A new format is a file with a function, and a line in formats.
type format struct {
	name  string
	write func(w io.Writer, run *Run) error
	bill  bool // of materials, which needs the components of objects
}

func formats() []format {
	return []format{
		{"cyclonedx", writeCycloneDX, true},
		{"github", writeGitHub, false},
		{"gitlab", writeGitLab, false},
		{"html", writeHTML, false},
		{"intoto", writeInToto, true},
		{"json", writeJSON, false},
		{"junit", writeJUnit, false},
		{"markdown", writeMarkdown, false},
		{"sarif", writeSARIF, false},
		{"spdx", writeSPDX, true},
	}
}

// Formats returns the names of the formats for findings, sorted.
func Formats() []string { return names(false) }

// Bills returns the names of the formats of bills of materials, sorted.
func Bills() []string { return names(true) }

func names(bills bool) []string {
	var names []string
	for _, f := range formats() {
		if f.bill == bills {
			names = append(names, f.name)
		}
	}
	return names
}

// Write writes a run in a format. The same run gives the same bytes.
func Write(w io.Writer, format string, run *Run) error {
	for _, f := range formats() {
		if f.name != format {
			continue
		}
		var buffer bytes.Buffer
		if err := f.write(&buffer, run.bounded()); err != nil {
			return err
		}
		_, err := w.Write(buffer.Bytes())
		return err
	}
	return fmt.Errorf("%q is not one of the formats %s", format, strings.Join(Formats(), ", "))
}

// bounded returns a copy of the run of a size that other programs accept, with text that every format can hold.
func (r *Run) bounded() *Run {
	b := *r
	b.Findings = cleaned(r.Findings, maxFindings)
	b.omitted = len(r.Findings) - len(b.Findings)
	b.silenced = len(r.Silenced)
	if b.Silenced = nil; r.ListSilenced {
		b.Silenced = cleaned(r.Silenced, maxFindings-len(b.Findings))
		b.omitted += len(r.Silenced) - len(b.Silenced)
	}
	b.Objects = make([]Object, len(r.Objects))
	for i, o := range r.Objects {
		for _, text := range []*string{
			&o.APIVersion, &o.Kind, &o.Namespace, &o.Name, &o.Pos.File, &o.Reason, &o.Message, &o.Version, &o.Revision, &o.Digest, &o.Path,
		} {
			*text = clean(*text)
		}
		if o.Component != nil {
			o.Component.Map(clean)
		}
		o.BlockedBy = cleanObject(o.BlockedBy)
		b.Objects[i] = o
	}
	return &b
}

// cleaned returns the first findings, at most the given number, with text that every format can hold.
func cleaned(findings []finding.Finding, most int) []finding.Finding {
	findings = slices.Clone(findings[:min(len(findings), most)])
	for i := range findings {
		f := &findings[i]
		f.Blocks = slices.Clone(f.Blocks)
		for j := range f.Blocks {
			f.Blocks[j] = cleanObject(f.Blocks[j])
		}
		for _, text := range []*string{&f.Kind, &f.Namespace, &f.Name, &f.Pos.File, &f.Line, &f.Message, &f.Fix, &f.Reason} {
			*text = clean(*text)
		}
	}
	return findings
}

func cleanObject(o finding.Object) finding.Object {
	o.Kind, o.Namespace, o.Name, o.Pos.File = clean(o.Kind), clean(o.Namespace), clean(o.Name), clean(o.Pos.File)
	return o
}

// clean drops the characters that some format cannot hold (control characters, broken UTF-8) and shortens long texts.
func clean(s string) string {
	s = printableDiff(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// subject returns the object of a finding, as messages name it.
func subject(f *finding.Finding) string { return objectName(f.Kind, f.Namespace, f.Name) }

func objectName(kind, namespace, name string) string {
	switch {
	case kind == "" && name == "":
		return ""
	case namespace == "":
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// headline returns the object and the message of a finding in one text. The message may begin with the object.
func headline(f *finding.Finding) string {
	s := subject(f)
	if rest, begins := strings.CutPrefix(f.Message, s); s != "" && !(begins && strings.HasPrefix(strings.TrimLeft(rest, ":"), " ")) {
		return s + ": " + f.Message
	}
	return f.Message
}

// details returns the text below the headline of a finding: the blocked objects, and the fix.
func details(f *finding.Finding) string {
	text := ""
	if len(f.Blocks) > 0 {
		text = "\nblocks " + blockedNames(f)
	}
	if f.Fix != "" {
		text += "\n" + f.Fix
	}
	return text
}

// blockedNames lists the objects that a finding blocks.
func blockedNames(f *finding.Finding) string {
	var names []string
	for _, o := range f.Blocks {
		names = append(names, o.String())
	}
	return strings.Join(names, ", ")
}

// endColumn returns the column after the offending text, 0 if its length is unknown. Columns count characters.
func endColumn(f *finding.Finding) int {
	if f.Length <= 0 || f.Pos.Column <= 0 {
		return 0
	}
	rest := f.Line
	for range f.Pos.Column - 1 {
		_, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
	}
	if len(rest) < f.Length { // the line is unknown, or its secrets were replaced
		return f.Pos.Column + f.Length
	}
	return f.Pos.Column + utf8.RuneCountInString(rest[:f.Length])
}

// fingerprints identify findings from one run to the next. They do not depend on the line number, so that a line inserted
// above does not make a finding new. Equal findings are numbered.
func fingerprints(findings []finding.Finding) []string {
	seen := map[string]int{}
	prints := make([]string, len(findings))
	for i, f := range findings {
		text := strings.TrimSpace(f.Line)
		if text == "" {
			text = f.Message
		}
		key := strings.Join([]string{string(f.Code), f.Pos.File, f.Kind, f.Namespace, f.Name, text}, "\x00")
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, seen[key]))
		seen[key]++
		prints[i] = hex.EncodeToString(sum[:])
	}
	return prints
}

// A Part is a number of objects with a word for their state.
type Part struct {
	Count  int
	Word   string
	Always bool // also with a count of 0
}

// Sum joins parts into one line.
func Sum(parts ...Part) string {
	var texts []string
	for _, p := range parts {
		if p.Count > 0 || p.Always {
			texts = append(texts, fmt.Sprintf("%d %s", p.Count, p.Word))
		}
	}
	return strings.Join(texts, ", ")
}

// Counts returns the numbers of findings by severity.
func Counts(findings []finding.Finding) map[finding.Severity]int {
	n := map[finding.Severity]int{}
	for _, f := range findings {
		n[f.Severity]++
	}
	return n
}

// omission returns a note about findings that are not listed, or "".
func (r *Run) omission() string {
	if r.omitted == 0 {
		return ""
	}
	return fmt.Sprintf("%d more findings are not listed", r.omitted)
}
