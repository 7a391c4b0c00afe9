package git

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A plainError names the failed operation itself.
type plainError struct{ finding.Problem }

// ErrEmpty reports that a repository has no commits.
var ErrEmpty error = &plainError{finding.Problem{Code: finding.GitReference, Class: finding.Lasting, Text: "git repository is empty"}}

// NoDirectory reports that a directory of spec.sparseCheckout does not exist.
func NoDirectory(dir string) error {
	return &plainError{finding.Problem{Class: finding.Lasting, Text: fmt.Sprintf(
		"failed to sparse checkout directories : sparse checkout dir '%s' does not exist in repository: no such file or directory", dir)}}
}

// A refError reports that a repository does not have the reference of spec.ref.
type refError struct {
	finding.Problem
	absent bool // a name that the server does not have
}

// noRef returns the error with a hint at existing references; the hint may be empty.
func noRef(hint, format string, args ...any) *refError {
	return &refError{Problem: finding.Problem{Code: finding.GitReference, Class: finding.Lasting, Text: fmt.Sprintf(format, args...), Advice: hint}}
}

// remoteError is an error of the server, in its words.
type remoteError struct{ text string }

func (e *remoteError) Error() string { return "remote: " + e.text }

func (e *remoteError) Transient() bool { return false }

// tooLarge reports that a part of a repository exceeds its limit.
func tooLarge(part string, limit int64) error {
	return &finding.Problem{
		Class: finding.Large | finding.Lasting, Text: fmt.Sprintf("the repository is too large: its %s is larger than %d", part, limit),
	}
}

// errCutShort reports that a server stopped in the middle of its answer.
var errCutShort = &finding.Problem{Class: finding.Passing, Text: "the server's answer ends too early"}

// missingRef returns the error for a missing reference, with a hint at the one that the user may have meant.
func missingRef(name string, refs []gitReference) error {
	e := noRef("", "couldn't find remote ref %q", name)
	e.absent = true
	short, branch := strings.CutPrefix(name, branchPrefix)
	if target := headOf(refs); branch && target != "" && target != name {
		e.Advice = fmt.Sprintf(finding.DefaultBranch, shortBranch(target))
	}
	if slices.ContainsFunc(refs, func(r gitReference) bool { return r.name == tagPrefix+short }) {
		e.Advice = fmt.Sprintf(finding.TagOfName, short)
	}
	return e
}

// headOf returns the reference that HEAD is, or "".
func headOf(refs []gitReference) (target string) {
	for _, r := range refs {
		if r.name == "HEAD" && r.target != "" {
			target = r.target
		}
	}
	return target
}

// shortBranch is the name of a branch for messages.
func shortBranch(name string) string {
	return finding.OneLine(strings.TrimPrefix(name, branchPrefix), fetch.MaxReason)
}
