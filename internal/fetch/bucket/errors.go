package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// An objectError is an error of an object store's library, in terms that all stores share.
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

// An Error reports a failure at a bucket.
type Error struct {
	finding.Problem
	wait time.Duration
}

// RetryAfter returns the wait that the server requested, or 0.
func (e *Error) RetryAfter() time.Duration { return e.wait }

// wrong returns an error for which a retry does not help. The hint may be empty.
func wrong(hint, format string, args ...any) error {
	return &Error{Problem: finding.Problem{Class: finding.Lasting, Text: fmt.Sprintf(format, args...), Advice: hint}}
}

// judge returns whether asking again may help, and whether credentials are the reason.
func judge(err error) (transient, login bool) {
	var answer *objectError
	if !errors.As(err, &answer) {
		return fetch.TransientRequest(err), fetch.AuthFailure(err)
	}
	return finding.TransientStatus(answer.status) || answer.code == "SlowDown" || answer.code == "ServerBusy",
		answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden
}

// failed describes a failure. Requests are signed in their URLs and headers, and servers often quote them.
func (b *bucket) failed(ctx context.Context, what string, err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = fetch.EndOf(ctx)
	}
	cloud, ok := errors.AsType[*auth.CloudError](err)
	if ok {
		err = cloud // the request around it was not sent
	} else {
		err = auth.RedactURLError(err)
	}
	// A certificate that is not accepted is not a login that is refused.
	e := &Error{Problem: finding.Problem{
		Code: fetch.TLSCode(err), Text: what + ": " + finding.OneLine(b.Login.scrub(b.STS.scrub(err.Error())), fetch.MaxErrorText), Err: err,
	}}
	transient, login := judge(err)
	e.Class = finding.Retryable(transient)
	if transient {
		e.wait = b.connect.wait()
	}
	if login {
		e.Class |= finding.Login
	}
	switch {
	case cloud != nil && cloud.Hint() != "":
		e.Advice = cloud.Hint()
	case fetch.CertificateFailure(err) && !b.Identity.HasCA():
		e.Advice = finding.BucketCA
	case fetch.CertificateFailure(err):
		e.Advice = finding.OtherCA
	case cloud != nil || fetch.TLSAlert(err):
	case login && b.Login == nil && b.STS == nil:
		e.Advice = b.provider.credentials
	case login:
		e.Advice = "the credentials may be wrong, or lack " + b.provider.permissions
	}
	return e
}

// notFound reports whether an object no longer exists. A bucket that does not exist is a different error.
func notFound(err error) bool {
	var answer *objectError
	return errors.As(err, &answer) && answer.missing
}
