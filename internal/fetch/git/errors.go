package git

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// checkoutError says what was to be done.
func checkoutError(err error) error {
	return fmt.Errorf("failed to checkout and determine revision: %w", err)
}

// An EmptyError reports that a repository has no commits.
type EmptyError struct{}

func (e *EmptyError) Error() string { return "git repository is empty" }

// Finding is what is wrong.
func (*EmptyError) Finding() finding.Code { return finding.GitReference }

// Transient is false.
func (e *EmptyError) Transient() bool { return false }

// A RefError reports that a repository does not have what spec.ref names.
type RefError struct {
	Message string
	hint    string
	absent  bool // a name that the server does not have
}

func (e *RefError) Error() string { return e.Message }

// Finding is what is wrong.
func (*RefError) Finding() finding.Code { return finding.GitReference }

// Hint says what there is instead, or is empty.
func (e *RefError) Hint() string { return e.hint }

// Transient is false.
func (e *RefError) Transient() bool { return false }

// A SparseError reports that a directory of spec.sparseCheckout does not exist.
type SparseError struct{ Dir string }

func (e *SparseError) Error() string {
	return fmt.Sprintf("failed to sparse checkout directories : sparse checkout dir '%s' does not exist in repository: no such file or directory", e.Dir)
}

// Transient is false.
func (e *SparseError) Transient() bool { return false }

// remoteError is an error of the server, in its words.
type remoteError struct{ text string }

func (e *remoteError) Error() string { return "remote: " + e.text }

func (e *remoteError) Transient() bool { return false }

// tooLarge says that a part of a repository is larger than it may be.
func tooLarge(part string, limit int64) error {
	return &finding.Problem{
		Class: finding.Large | finding.Lasting, Text: fmt.Sprintf("the repository is too large: its %s is larger than %d", part, limit),
	}
}

// errCutShort reports that a server stopped in the middle of its answer.
var errCutShort = &finding.Problem{Class: finding.Passing, Text: "the server's answer ends too early"}

// missingRef finds out what the user may have meant.
func missingRef(name string, refs []gitReference) *RefError {
	e := &RefError{Message: fmt.Sprintf("couldn't find remote ref %q", name), absent: true}
	short := strings.TrimPrefix(name, "refs/heads/")
	tag := func(r gitReference) bool { return r.name == "refs/tags/"+short }
	branch := strings.HasPrefix(name, "refs/heads/")
	for _, r := range refs {
		if branch && r.name == "HEAD" && r.target != "" && r.target != name {
			e.hint = fmt.Sprintf(finding.DefaultBranch, finding.OneLine(strings.TrimPrefix(r.target, "refs/heads/"), fetch.MaxReason))
		}
	}
	if slices.ContainsFunc(refs, tag) {
		e.hint = fmt.Sprintf(finding.TagOfName, short)
	}
	return e
}
