package fetch

import (
	"github.com/go-git/go-git/v5/plumbing/object"
)

// GitVerify is spec.verify of a GitRepository, with the keys of its Secret.
type GitVerify struct {
	Mode string // HEAD, Tag or TagAndHEAD; head and anything else is HEAD
	Keys map[string][]byte
}

// A GitVerifyError tells that a signature is not there, or not by a key that is trusted.
type GitVerifyError struct {
	Reason  string // of the condition, as source-controller has it
	Message string
}

func (e *GitVerifyError) Error() string { return e.Message }

// Transient is false.
func (e *GitVerifyError) Transient() bool { return false }

func (v *GitVerify) check(*gitStore, *gitTarget, *object.Commit) ([]string, error) {
	if v == nil {
		return nil, nil
	}
	return nil, &NotSupportedError{What: "spec.verify of a GitRepository"}
}
