package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// CosignOptions select the signatures that count: with Keys the signatures of these keys, else the signatures with a
// certificate for one of the Identities.
type CosignOptions struct {
	// Keys are public keys as PEM, by name. They are tried in the order of their names.
	Keys map[string][]byte
	// Identities are alternatives. If empty, any identity is accepted.
	Identities []Identity
	// Trust is not used until a signature with a certificate is found.
	Trust *Trust
}

// An Identity matches certificates. Both fields are Go regular expressions that match any part, as cosign's; an empty
// expression matches everything.
type Identity struct{ Issuer, Subject string }

const (
	noSignatures = "no signatures found"
	noMatching   = "no matching signatures"
)

// Cosign looks for a cosign signature of the subject, as a manifest under the digest's .sig tag or as a sigstore bundle that
// refers to the digest, and returns the signer of the first one that counts.
//
// If the registry has answered completely, the error reports that the subject is unsigned or that a limit is exceeded, or is a
// [*RefusedError]. It is a [*SettingsError] if the options are wrong. Any other error means that the signatures could not be
// read; it is never taken for a verdict.
func Cosign(ctx context.Context, s Subject, o CosignOptions) (*Signer, error) {
	r, err := newReader(s)
	if err != nil {
		return nil, err
	}
	j, err := o.judge()
	if err != nil {
		return nil, err
	}
	f := &findings{}
	for _, look := range []func(context.Context, *reader, judge, *findings) (*Signer, error){lookClassic, lookBundles} {
		signer, err := look(ctx, r, j, f)
		if signer != nil {
			return signer, nil
		}
		f.failed(err)
	}
	return nil, f.verdict(s)
}

// A judge decides about one signature. The error is the reason for which the signature does not count or, if trust
// material is not available, a failure.
type judge interface {
	classic(context.Context, *classicSignature) (*Signer, error)
	bundle(context.Context, *bundleSignature) (*Signer, error)
}

func (o CosignOptions) judge() (judge, error) {
	if len(o.Keys) > 0 {
		return newKeyJudge(o.Keys)
	}
	return newKeylessJudge(o.Identities, o.Trust)
}

// findings are the errors that are collected before the verdict.
type findings struct {
	failures []error // that are not about signatures
	limit    error
	refusals []error
}

// failed sorts an error into the findings. A refused signature does not keep the rest from being verified.
func (f *findings) failed(err error) {
	var limit *limitError
	var refused interface{ Integrity() bool }
	switch {
	case err == nil:
	case errors.As(err, &limit):
		f.limit = err
	case errors.As(err, &refused):
		f.refusals = append(f.refusals, err)
	default:
		f.failures = append(f.failures, err)
	}
}

func (f *findings) verdict(s Subject) error {
	switch {
	case len(f.failures) > 0:
		return fmt.Errorf("failed to look for signatures of %s: %w", s.Ref(), joined(f.failures))
	case f.limit != nil:
		return f.limit
	case len(f.refusals) > 0:
		return refused(hintOf(f.refusals), noMatching, joined(f.refusals))
	}
	return unsigned(noSignatures)
}

// maxReasons is the limit of reasons in one message.
const maxReasons = 3

// joined returns an error with the texts of several errors in one line, each text once.
func joined(errs []error) error {
	var texts []string
	for _, err := range errs {
		if text := err.Error(); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if more := len(texts) - maxReasons; more > 0 {
		texts = append(texts[:maxReasons], fmt.Sprintf("and %d more", more))
	}
	return &finding.Problem{Text: strings.Join(texts, "; "), Err: errors.Join(errs...)}
}

// hintOf returns the first hint of any of the errors.
func hintOf(errs []error) string {
	for _, err := range errs {
		if hints := finding.Hints(err); len(hints) > 0 {
			return hints[0]
		}
	}
	return ""
}

// refusal returns the reason for which one signature does not count.
func refusal(hint, format string, args ...any) error {
	return refused(hint, fmt.Sprintf(format, args...), nil)
}

// guarded runs the checks of a library on untrusted input. They should not panic, but some have.
func guarded(check func() (*Signer, error)) (signer *Signer, err error) {
	defer func() {
		if p := recover(); p != nil {
			signer, err = nil, refusal("", "malformed signature: %v", p)
		}
	}()
	return check()
}
