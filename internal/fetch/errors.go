package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A StatusError is an answer with another status than 200.
type StatusError struct {
	URL    string // redacted
	Code   int
	Status string // code and reason
	Advice string

	wait time.Duration
}

// Error has a space before the colon because Helm, and so source-controller, prints one.
func (e *StatusError) Error() string { return fmt.Sprintf("failed to fetch %s : %s", e.URL, e.Status) }

// Finding returns the code of the fault.
func (e *StatusError) Finding() finding.Code { return finding.OfStatus(e.Code) }

// Transient reports whether asking again may help.
func (e *StatusError) Transient() bool { return finding.TransientStatus(e.Code) }

// AuthFailure reports whether the server requires other credentials.
func (e *StatusError) AuthFailure() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

// RetryAfter returns the wait that the server requested, or 0.
func (e *StatusError) RetryAfter() time.Duration { return e.wait }

// Hint returns advice for the user, or "".
func (e *StatusError) Hint() string { return e.Advice }

// NewStatusError describes the answer, which it closes; scrub removes secrets from a text.
func NewStatusError(r *http.Response, requested string, scrub func(string) string, now time.Time) *StatusError {
	_ = Snippet(r)
	return &StatusError{
		URL:    auth.RedactURL(requested),
		Code:   r.StatusCode,
		Status: statusLine(r, scrub),
		wait:   RetryAfter(r.Header, now),
	}
}

// Limits of a server's text in messages.
const (
	maxSnippet   = 300
	MaxReason    = 80
	MaxErrorText = 500
)

// statusLine returns the status with the server's text, or with the standard text if the server sends no text.
func statusLine(r *http.Response, scrub func(string) string) string {
	_, reason, _ := strings.Cut(r.Status, " ")
	reason = finding.OneLine(scrub(reason), MaxReason)
	if reason == "" {
		reason = http.StatusText(r.StatusCode)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, reason))
}

// NoReferrers reports whether a registry answers with this HTTP status because it does not know a request for referrers.
func NoReferrers(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		return true
	}
	return false
}

// NewTimeout is the cause of a context that ends after a time that the user can set by the field or the option of this name.
func NewTimeout(name string, after time.Duration) error {
	return &finding.Problem{Class: finding.Passing, Text: fmt.Sprintf("%s of %v exceeded", name, after), Err: context.DeadlineExceeded}
}

// Within bounds a context by spec.timeout, which is no bound if it is 0.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, NewTimeout(finding.Timeout, timeout))
}

// requestCode returns the code of a failed request: the code of the error behind it, or of the network.
func requestCode(err error, transient bool) finding.Code {
	var elsewhere *url.Error
	code := cmp.Or(finding.CodeOf(err), networkCode(err, transient || Transient(err)))
	switch {
	case code != "":
		return code
	case errors.As(err, &elsewhere):
		return ""
	}
	return finding.RefusedRequest
}

// NewRequestError describes a failed request or a failed read of its answer. If the context has ended, its cause is the
// reason: transports report it in many forms.
func NewRequestError(ctx context.Context, requested string, err error) error {
	return DescribeRequest(ctx, requested, err, func(err error) (text, advice string) { return err.Error(), "" })
}

// DescribeRequest is [NewRequestError] for errors that may quote the server: describe returns a safe text, and advice.
func DescribeRequest(ctx context.Context, requested string, err error, describe func(error) (text, advice string)) error {
	if ctx.Err() != nil {
		err = EndOf(ctx)
	}
	return requestError(requested, err, TransientRequest(err), describe)
}

func requestError(requested string, err error, transient bool, describe func(error) (text, advice string)) error {
	text, advice := describe(err)
	at := auth.RedactURL(requested)
	return &finding.Problem{
		Code: requestCode(err, transient), Class: finding.Retryable(transient),
		Text: fmt.Sprintf("Get %q: %s", at, text), Advice: advice, Err: &url.Error{Op: "Get", URL: at, Err: err},
	}
}

// EndOf returns why a context has ended. A cause that does not say that it is transient is a decision of the caller.
func EndOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) || Transient(cause) {
		return cause
	}
	return &finding.Problem{Text: cause.Error(), Err: errors.Join(cause, context.Canceled)}
}

// MaxName is how much of a name that a server made up is shown, in characters.
const MaxName = 100

// NewSizeError reports that something exceeds its size limit, and that an option can raise the limit.
func NewSizeError(text string) error { return &finding.Problem{Class: finding.Large, Text: text} }

// TooLargeArchive returns the error for an archive that exceeds the limit, in bytes.
func TooLargeArchive(file string, limit int64) error {
	return NewSizeError(fmt.Sprintf("size of chart '%s' exceeds '%d' bytes limit", file, limit))
}

// A NotSupportedError names a feature that is not supported.
type NotSupportedError struct{ finding.Problem }

// NotSupported returns the error of a feature.
func NotSupported(what string) error {
	return &NotSupportedError{finding.Problem{Code: finding.NotSupported, Class: finding.Lasting, Text: what + " is not supported yet"}}
}
