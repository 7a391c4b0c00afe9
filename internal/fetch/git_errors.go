package fetch

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// checkoutError says what was to be done.
func checkoutError(err error) error {
	return fmt.Errorf("failed to checkout and determine revision: %w", err)
}

// A GitEmptyError tells that a repository has no commits.
type GitEmptyError struct{}

func (e *GitEmptyError) Error() string { return "git repository is empty" }

// Transient is false.
func (e *GitEmptyError) Transient() bool { return false }

// A GitRefError tells that a repository does not have what spec.ref names.
type GitRefError struct {
	Message string
	hint    string
	absent  bool // a name that the server does not have
}

func (e *GitRefError) Error() string { return e.Message }

// Hint tells what there is instead, or is empty.
func (e *GitRefError) Hint() string { return e.hint }

// Transient is false.
func (e *GitRefError) Transient() bool { return false }

// A GitSparseError tells that a directory of spec.sparseCheckout does not exist.
type GitSparseError struct{ Dir string }

func (e *GitSparseError) Error() string {
	return fmt.Sprintf("failed to sparse checkout directories : sparse checkout dir '%s' does not exist in repository: no such file or directory", e.Dir)
}

// Transient is false.
func (e *GitSparseError) Transient() bool { return false }

// A NotSupportedError tells what is not implemented yet.
type NotSupportedError struct{ What string }

func (e *NotSupportedError) Error() string { return e.What + " is not supported yet" }

// Transient is false.
func (e *NotSupportedError) Transient() bool { return false }

// gitStatusError is an HTTP status in Git's words.
type gitStatusError struct{ *StatusError }

func (e *gitStatusError) Unwrap() error { return e.StatusError }

func (e *gitStatusError) Error() string {
	what := "unexpected answer"
	switch e.Code {
	case http.StatusUnauthorized:
		what = "authentication required"
	case http.StatusForbidden:
		what = "authorization failed"
	case http.StatusNotFound:
		what = "repository not found"
	}
	return what + ": " + e.Status
}

// gitNotServedError tells that an answer comes from something else than a Git server.
type gitNotServedError struct{ URL string }

func (e *gitNotServedError) Error() string { return "there is no Git repository at " + e.URL }

func (e *gitNotServedError) Transient() bool { return false }

func (e *gitNotServedError) Hint() string {
	return "spec.url is the URL that git clone takes, which is often not the one that a browser shows"
}

// gitRemoteError is a complaint of the server's, in its words.
type gitRemoteError struct{ text string }

func (e *gitRemoteError) Error() string { return "remote: " + e.text }

func (e *gitRemoteError) Transient() bool { return false }

// gitLimitError tells that a repository is larger than it may be.
type gitLimitError struct {
	what  string
	limit int64
}

func (e *gitLimitError) Error() string {
	return fmt.Sprintf("the repository is too large: its %s is larger than %d", e.what, e.limit)
}

func (e *gitLimitError) Transient() bool { return false }

// TooLarge is true.
func (e *gitLimitError) TooLarge() bool { return true }

// gitCutShortError tells that a server stopped in the middle of its answer.
type gitCutShortError struct{}

func (e *gitCutShortError) Error() string { return "the server's answer ends too early" }

func (e *gitCutShortError) Transient() bool { return true }

// missingRef finds out what the user may have meant.
func missingRef(name string, refs []gitReference) *GitRefError {
	e := &GitRefError{Message: fmt.Sprintf("couldn't find remote ref %q", name), absent: true}
	short := strings.TrimPrefix(name, "refs/heads/")
	tag := func(r gitReference) bool { return r.name == "refs/tags/"+short }
	branch := strings.HasPrefix(name, "refs/heads/")
	for _, r := range refs {
		if branch && r.name == "HEAD" && r.target != "" && r.target != name {
			e.hint = fmt.Sprintf("the default branch of the repository is %s: spec.ref.branch names the one to use",
				oneLine(strings.TrimPrefix(r.target, "refs/heads/"), maxReason))
		}
	}
	if slices.ContainsFunc(refs, tag) {
		e.hint = fmt.Sprintf("there is a tag of this name: use spec.ref.tag: %s", short)
	}
	return e
}
