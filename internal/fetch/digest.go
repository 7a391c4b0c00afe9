package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// A DigestPolicy decides whether an archive may differ from the digest in its index entry.
type DigestPolicy int

// The zero value refuses it.
const (
	DigestEnforce DigestPolicy = iota
	DigestWarn
	DigestIgnore
)

// A DigestError reports that an archive does not have the digest in the index.
type DigestError struct {
	File string
	Err  error // *digest.MismatchError
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("archive '%s' does not have the digest in the index: %v", e.File, e.Err)
}

// Finding returns [finding.DigestMismatch].
func (*DigestError) Finding() finding.Code { return finding.DigestMismatch }

func (e *DigestError) Unwrap() error { return e.Err }

// Integrity returns true: the fetched archive is not the published one.
func (e *DigestError) Integrity() bool { return true }

// Transient is false: the same bytes would come again.
func (e *DigestError) Transient() bool { return false }

// CandidateDigest returns the digest that the candidate's archive has to have, or "" if it need not be compared.
func CandidateDigest(ctx context.Context, c resolve.Candidate, policy DigestPolicy) digest.Digest {
	if policy == DigestIgnore || c.Digest == "" {
		return ""
	}
	want, err := digest.ParseLoose(c.Digest)
	if _, unquoted := strings.CutPrefix(c.Digest, resolve.UnquotedDigest); unquoted {
		err = errUnquoted
	}
	if err != nil {
		Warn(ctx, &UncheckedError{finding.Problem{Err: err, Text: fmt.Sprintf("archive of chart '%s' %s is not checked against the index: %v",
			finding.OneLine(c.Name, MaxName), finding.OneLine(c.Version, MaxName), err)}})
		return ""
	}
	return want
}

// errUnquoted does not show the number: reading it has changed it.
var errUnquoted = errors.New("the digest is an unquoted number: it must be a string in the index")

// UncheckedError is the warning that the index has no digest for an archive that could be compared.
type UncheckedError struct{ finding.Problem }
