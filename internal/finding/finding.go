// Package finding names what can be wrong, each kind of mistake by a stable code, and explains each. It
// does not look for mistakes itself.
package finding

import (
	"fmt"
	"strings"
	"unicode"
)

// Code names a kind of mistake permanently: HS012. A code that is no longer used is not given to anything else.
type Code string

// Severity says what a finding does to the result of a run.
type Severity string

// The severities. Errors fail the run; warnings do with --strict; most notes are only shown with -v.
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

// String gives file:line:column, the form that editors and terminals turn into a link.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Finding is one mistake at one place. What finds it makes it; it is a value, and each that passes it on may change its
// own copy.
type Finding struct {
	Code     Code
	Severity Severity

	Kind, Namespace, Name string // of the object, empty for what belongs to none

	Pos    Pos
	Length int    // of the offending text on that line in bytes, 0 if unknown
	Line   string // the source line, redacted, "" if unknown

	Message string
	Fix     string // what to do about this very one
	Related []Pos
	Reason  string // for which a comment silences it
	Repair  *Repair

	// MadeOf is the object of a file that the object is made of, as a HelmChart of a HelmRelease; else it is empty.
	MadeOf Object
	// BlockedBy is the object whose failure is the only reason for this one; else it is empty.
	BlockedBy Object
	// Blocks are the objects that fail for this reason alone, directly or through others.
	Blocks []Object
	// Cause is equal for failures of several objects that one server is the reason for, "" for all others.
	Cause string
	// Missing is what an object lacks in a run that opens no connection, "" for all others.
	Missing string
}

// Repair is what to write instead of a part of a line.
type Repair struct {
	Pos
	EndColumn int // after the last character that goes
	Text      string
}

// AsWarning returns the finding of a run that goes on: an error is a warning.
func (f Finding) AsWarning() Finding {
	if f.Severity == Error {
		f.Severity = Warning
	}
	return f
}

// SeverityOf is the severity that a rule has by itself. A code without a rule is an error.
func SeverityOf(code Code) Severity {
	if r, ok := Lookup(string(code)); ok {
		return r.Severity
	}
	return Error
}

// Hint is the fix as a hint is written: in lower case, without a full stop.
func (r Rule) Hint() string {
	text := strings.TrimSuffix(r.Fix, ".")
	if len(text) > 1 && !unicode.IsUpper(rune(text[1])) {
		return strings.ToLower(text[:1]) + text[1:]
	}
	return text
}
