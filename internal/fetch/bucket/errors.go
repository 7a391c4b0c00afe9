package bucket

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// An objectError is what the library of an object store says of an answer, in terms that all of them share.
type objectError struct {
	status  int
	code    string // the store's own
	text    string // empty is that of err
	missing bool   // the object, not the bucket, is not there
	err     error  // the library's, if there is one
}

func (e *objectError) Error() string {
	if e.text != "" {
		return e.text
	}
	return e.err.Error()
}

func (e *objectError) Unwrap() error { return e.err }

// storeHints are the words that differ between object stores.
type storeHints struct {
	credentials string // what there may have to be
	permissions string // of those that there are
}

// An Error says what is wrong with a bucket.
type Error struct {
	text string
	hint string
	wait time.Duration
	err  error // nil if the text says everything
}

func (e *Error) Error() string { return e.text }

func (e *Error) Unwrap() error { return e.err }

// Finding keeps a certificate that is not accepted apart from a login that is refused.
func (e *Error) Finding() finding.Code { return fetch.TLSCode(e.err) }

// Hint says what to do, or is empty.
func (e *Error) Hint() string { return e.hint }

// RetryAfter is how long the server wants clients to wait, or 0.
func (e *Error) RetryAfter() time.Duration { return e.wait }

// Transient reports whether asking again may help.
func (e *Error) Transient() bool {
	if e.err == nil {
		return false
	}
	var answer *objectError
	if errors.As(e.err, &answer) {
		return finding.TransientStatus(answer.status) || answer.code == "SlowDown" || answer.code == "ServerBusy"
	}
	return fetch.TransientRequest(e.err)
}

// AuthFailure reports whether credentials are the reason.
func (e *Error) AuthFailure() bool {
	var answer *objectError
	if !errors.As(e.err, &answer) {
		return fetch.AuthFailure(e.err)
	}
	return answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden
}

// failed describes what went wrong. Requests are signed in their URLs and headers, and servers like to quote them.
func (b *bucket) failed(ctx context.Context, what string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = fetch.EndOf(ctx)
	}
	var cloud *auth.CloudError
	if errors.As(err, &cloud) {
		err = cloud // the request around it was not sent
	} else {
		err = auth.RedactURLError(err)
	}
	e := &Error{err: err}
	e.text = what + ": " + finding.OneLine(b.Login.scrub(b.STS.scrub(err.Error())), fetch.MaxErrorText)
	if e.Transient() {
		e.wait = b.connect.wait()
	}
	switch {
	case cloud != nil && cloud.Hint() != "":
		e.hint = cloud.Hint()
	case fetch.CertificateFailure(err) && !b.Identity.HasCA():
		e.hint = finding.BucketCA
	case fetch.CertificateFailure(err):
		e.hint = finding.OtherCA
	case cloud != nil || fetch.TLSAlert(err):
	case e.AuthFailure() && b.Login == nil && b.STS == nil:
		e.hint = b.store.hints().credentials
	case e.AuthFailure():
		e.hint = "the credentials may be wrong, or lack " + b.store.hints().permissions
	}
	return e
}

// notFound reports whether an object no longer exists. A bucket that does not exist is a different error.
func notFound(err error) bool {
	var answer *objectError
	return errors.As(err, &answer) && answer.missing
}
