// Package finding defines the kinds of mistakes, each with a stable code and an explanation. It does not look for mistakes
// itself.
package finding

import (
	"fmt"
	"strings"
	"unicode"
)

// Code names a kind of mistake permanently: HS012. A code that is no longer used is not given to another rule.
type Code string

// Severity determines the effect of a finding on the result of a run.
type Severity string

// The severities. Errors fail the run; warnings fail it with --strict; most notes are only shown with -v.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Pos is a place in a file. Line and Column count from 1, columns in characters.
type Pos struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns file:line:column, the form that editors and terminals turn into a link.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Finding is one mistake at one place. It is a value: each function that passes it on may change its own copy.
type Finding struct {
	Code     Code
	Severity Severity

	Kind, Namespace, Name string // of the object, empty without an object

	Pos    Pos
	Length int    // of the offending text on that line in bytes, 0 if unknown
	Line   string // the source line, redacted, "" if unknown

	Clusters []string // that have it, nil if all have

	Message string
	Fix     string // advice for this finding
	Related []Pos
	Reason  string // the reason of the comment that silences it
	Repair  *Repair

	// MadeOf is the object of a file that the object is made of, as a HelmChart of a HelmRelease; else it is empty.
	MadeOf Object
	// BlockedBy is the object whose failure is the only reason for this one; else it is empty.
	BlockedBy Object
	// Blocks holds the objects that fail only because of this finding, directly or through other objects.
	Blocks []Object
	// Cause is equal for the failures of several objects that one server causes, "" otherwise.
	Cause string
	// Missing is the data that an object lacks in an offline run, "" otherwise.
	Missing string
}

// Repair is the replacement of a part of a line.
type Repair struct {
	Pos
	EndColumn int // after the last replaced character
	Text      string
}

// AsWarning returns the finding for a run that continues: an error becomes a warning.
func (f Finding) AsWarning() Finding {
	if f.Severity == Error {
		f.Severity = Warning
	}
	return f
}

// SeverityOf returns the severity of a rule. A code without a rule is an error.
func SeverityOf(code Code) Severity {
	if r, ok := Lookup(string(code)); ok {
		return r.Severity
	}
	return Error
}

// Hint returns the fix in the form of a hint: in lower case, without a full stop.
func (r Rule) Hint() string {
	text := strings.TrimSuffix(r.Fix, ".")
	if len(text) > 1 && !unicode.IsUpper(rune(text[1])) {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
