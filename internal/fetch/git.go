package fetch

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// GitRef is spec.ref of a GitRepository. Of several fields the last one that is set counts.
type GitRef struct{ Branch, Tag, SemVer, Name, Commit string }

// defaultBranch is what a GitRepository without spec.ref means, whatever the server calls its own default.
const defaultBranch = "master"

// GitOptions are the settings of one GitRepository.
type GitOptions struct {
	URL     string
	Ref     GitRef
	Login   *GitLogin     // nil is anonymous
	Proxy   *Proxy        // of proxySecretRef; nil is the environment's
	Timeout time.Duration // spec.timeout: of the whole clone, with its retries; 0 is none

	RecurseSubmodules bool
	// SparseCheckout are the directories that are wanted; nil is the whole repository. Where the server allows, nothing
	// else is downloaded.
	SparseCheckout []string
	// Only are files and directories besides which nothing is wanted now, whether they are there or not; nil is
	// everything. It is for who looks at a commit without keeping it, and has no say in what SparseCheckout lists.
	Only   []string
	Verify *GitVerify

	// Unless is the revision of an artifact that is there already: if it is still the right one, nothing is fetched.
	// It does not count where something is to be verified.
	Unless string
	// TempDir is where the tree is written; empty is the system's directory for such.
	TempDir string
	Limits  GitLimits
}

// GitLimits bound what a repository may make of itself. A zero stands for the default.
type GitLimits struct {
	Pack     int64 // bytes that are downloaded, of one repository
	Objects  int   // in one repository
	Object   int64 // bytes of one object
	Unpacked int64 // bytes of all files, and of all objects of one repository
	Files    int
}

// The defaults are well above any repository that charts are kept in. Objects are handled in memory, so their size
// bounds what the program needs.
const (
	defaultGitPack     = 2 << 30
	defaultGitObjects  = 2_000_000
	defaultGitObject   = 256 << 20
	defaultGitUnpacked = 4 << 30
	defaultGitFiles    = 500_000
)

func (l GitLimits) orDefault() GitLimits {
	l.Pack = orDefault(l.Pack, defaultGitPack)
	l.Objects = orDefault(l.Objects, defaultGitObjects)
	l.Object = orDefault(l.Object, defaultGitObject)
	l.Unpacked = orDefault(l.Unpacked, defaultGitUnpacked)
	l.Files = orDefault(l.Files, defaultGitFiles)
	return l
}

func orDefault[T int | int64](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}

// Git fetches what a GitRepository names. Errors have source-controller's texts; a *GitEmptyError tells that there is
// no commit at all.
func (c *Client) Git(ctx context.Context, o GitOptions) (*Tree, error) {
	u, err := auth.ParseURL(o.URL)
	if err != nil {
		return nil, &GitURLError{URL: auth.RedactURL(o.URL), err: err}
	}
	if err := checkGitURL(u); err != nil {
		return nil, &GitURLError{URL: auth.RedactURL(o.URL), err: err}
	}
	o.Limits = o.Limits.orDefault()
	s := &slot{limit: c.limit}
	defer s.free()
	// As with archives, waiting for this process's own transfers does not count.
	if err := s.move(ctx, u); err != nil {
		return nil, newRequestError(ctx, o.URL, err)
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, &TimeoutError{Name: "spec.timeout", After: o.Timeout})
		defer cancel()
	}
	var tree *Tree
	err = c.retry(ctx, func(ctx context.Context, n int) error {
		attempt := &clone{client: c, options: o, slot: s, attempt: n}
		tree, err = attempt.run(ctx, u)
		return err
	})
	return tree, err
}

func checkGitURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh":
		return &SchemeError{u.Scheme}
	case u.Hostname() == "":
		return errNoHost
	}
	return nil
}

// A GitURLError tells that a URL is not one of a Git repository.
type GitURLError struct {
	URL string // redacted
	err error
}

func (e *GitURLError) Error() string {
	return fmt.Sprintf("failed to parse url '%s': %v", e.URL, e.err)
}

func (e *GitURLError) Unwrap() error { return e.err }

// Transient is false.
func (e *GitURLError) Transient() bool { return false }
