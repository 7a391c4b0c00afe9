// Package finding names what can be wrong, each kind of mistake by a stable code, and explains each. It
// does not look for mistakes itself.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// Rule is what is known about a kind of mistake.
type Rule struct {
	Code     Code
	Name     string // a word or several with dashes
	Group    string // the heading that it stands under in the catalogue
	Severity Severity
	Summary  string // one sentence, without a full stop
	// Explanation says why it matters.
	Explanation string
	Fix         string // what to do, in general
	Example     string // manifests that have the mistake; empty for what shows only while something is fetched
	Better      string // the same without it
	// Remedy is the one way to fix it, nil if there are several or none that a program could know.
	Remedy *Remedy
	// Lasting mistakes cannot be silenced: nothing could be done with what they are about, or it is not to be trusted.
	Lasting bool
}

// Pos is a place in a file. Line and Column count from 1, columns in characters.
type Pos struct {
	File         string
	Line, Column int
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

// Remedy says how the text of a manifest has to change. One of Replace, Quote and Insert is set, but where only the version
// of Flux says what to write.
type Remedy struct {
	Keys    []string                  // of the value that it is about
	Replace func(value string) string // what to write instead; the same for nothing
	Quote   bool                      // the value needs quotes
	Insert  [2]string                 // a key and its value, behind Keys
}

// RemedyKeys are the keys that remedies are about.
func RemedyKeys() []string {
	var keys []string
	for _, rule := range Rules() {
		if rule.Remedy != nil {
			keys = append(keys, rule.Remedy.Keys...)
		}
	}
	return keys
}

// Repair is what to write instead of a part of a line.
type Repair struct {
	Pos
	EndColumn int // after the last character that goes
	Text      string
}

// The headings of the catalogue, in its order.
const (
	groupInput          = "Input"
	groupAdmission      = "What the API server refuses"
	groupDeprecated     = "Deprecations"
	groupReferences     = "References"
	groupURLs           = "URLs"
	groupCharts         = "Charts and versions"
	groupSettings       = "Settings"
	groupVerification   = "Verification"
	groupSecrets        = "Secrets"
	groupKustomizations = "Kustomizations"
	groupGenerators     = "Generators"
	groupReleases       = "Releases of Flux 1"
	groupIgnores        = "Comments that silence findings"
	groupRun            = "While fetching"
	groupIntegrity      = "Integrity"
)

//go:generate go test -run TestPage -update .

// Rules lists all rules by code. They are built on use: most runs need none of them.
func Rules() []Rule {
	var all []Rule
	for _, group := range []func() []Rule{
		inputRules, admissionRules, deprecationRules, referenceRules, urlRules, chartRules, settingRules, ociRules, releaseRules,
		verificationRules, secretRules, kustomizationRules, generatorRules, operatorRules, ignoreRules, runRules, integrityRules,
	} {
		all = append(all, group()...)
	}
	slices.SortFunc(all, func(a, b Rule) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

// byCode is put together when a rule is first looked for.
var byCode = sync.OnceValue(func() map[Code]Rule {
	rules := map[Code]Rule{}
	for _, r := range Rules() {
		rules[r.Code] = r
	}
	return rules
})

// Lookup finds a rule by its code, or by one whose place it has taken.
func Lookup(code string) (Rule, bool) {
	r, ok := byCode()[current(Code(code))]
	return r, ok
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

// Silenceable reports whether a comment can silence a finding: not where nothing could be done with what it is about,
// and not a failure of a run.
func (r Rule) Silenceable() bool { return !r.Lasting && (r.Example != "" || r.Severity != Error) }
