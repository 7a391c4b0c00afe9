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
	"unicode"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A StatusError is an answer with another status than 200.
type StatusError struct {
	URL     string // redacted
	Code    int
	Status  string // code and reason
	Snippet string // the beginning of the answer in one line, without secrets

	wait   time.Duration
	Advice string
}

// Error has a space before the colon because Helm, and so source-controller, prints one.
func (e *StatusError) Error() string { return fmt.Sprintf("failed to fetch %s : %s", e.URL, e.Status) }

// Finding is what is wrong.
func (e *StatusError) Finding() finding.Code { return finding.OfStatus(e.Code) }

// Transient reports whether asking again may help.
func (e *StatusError) Transient() bool { return finding.TransientStatus(e.Code) }

// AuthFailure reports whether the server wants other credentials.
func (e *StatusError) AuthFailure() bool {
	return e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden
}

// RetryAfter is the wait that the server asks for, or 0.
func (e *StatusError) RetryAfter() time.Duration { return e.wait }

// Hint says what to do, or is empty.
func (e *StatusError) Hint() string { return e.Advice }

// NewStatusError describes the answer. The snippet is the beginning of its body; scrub removes secrets from a text.
func NewStatusError(r *http.Response, requested string, snippet []byte, scrub func(string) string, now time.Time) *StatusError {
	return &StatusError{
		URL:     auth.RedactURL(requested),
		Code:    r.StatusCode,
		Status:  statusLine(r, scrub),
		Snippet: OneLine(scrub(string(snippet)), maxSnippet),
		wait:    RetryAfter(r.Header, now),
	}
}

// What is shown of a server's own words is bounded.
const (
	maxSnippet   = 300
	MaxReason    = 80
	MaxErrorText = 500
)

// statusLine returns the status as the server words it, or as the standard does where it has no words.
func statusLine(r *http.Response, scrub func(string) string) string {
	_, reason, _ := strings.Cut(r.Status, " ")
	reason = OneLine(scrub(reason), MaxReason)
	if reason == "" {
		reason = http.StatusText(r.StatusCode)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.StatusCode, reason))
}

// OneLine makes a text from outside fit to be printed: one line, no control characters, at most limit characters.
func OneLine(text string, limit int) string {
	var b strings.Builder
	count := 0
	for _, word := range strings.Fields(strings.ToValidUTF8(text, "")) {
		for _, c := range " " + word {
			if count == 0 && c == ' ' || !unicode.IsPrint(c) {
				continue
			}
			if count == limit {
				return b.String() + "…"
			}
			b.WriteRune(c)
			count++
		}
	}
	return b.String()
}

// A TimeoutError is the cause of a context that ends after a time that the user can set.
type TimeoutError struct {
	Name  string // of the field or flag, as the user writes it
	After time.Duration
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("%s of %v exceeded", e.Name, e.After) }

// Transient is true: another day the server may be quicker.
func (e *TimeoutError) Transient() bool { return true }

// Timeout makes it a timeout for those who look for net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// Is makes it a context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A RequestError is a request that got no complete answer.
type RequestError struct {
	URL string // redacted
	Err error

	Text   string // of Err, where it may hold the server's own words
	Advice string
}

func (e *RequestError) Error() string {
	if e.Text != "" {
		return fmt.Sprintf("Get %q: %s", e.URL, e.Text)
	}
	return fmt.Sprintf("Get %q: %v", e.URL, e.Err)
}

// Finding is what is wrong.
func (e *RequestError) Finding() finding.Code { return requestCode(e.Err, e.Transient()) }

// requestCode is what is wrong with a request: what the error behind it says, or the network.
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

func (e *RequestError) Unwrap() error { return e.Err }

// Transient reports whether asking again may help.
func (e *RequestError) Transient() bool { return TransientRequest(e.Err) }

// Hint says what to do, or is empty.
func (e *RequestError) Hint() string { return e.Advice }

// NewRequestError describes a failed request or a failed read of its answer. What ended the context is the reason, if
// something did: transports report it in many disguises.
func NewRequestError(ctx context.Context, requested string, err error) *RequestError {
	if ctx.Err() != nil {
		err = EndOf(ctx)
	}
	return &RequestError{URL: auth.RedactURL(requested), Err: err}
}

// EndOf returns why a context has ended. A cause that does not say that it is transient is a decision of the caller.
func EndOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) || Transient(cause) {
		return cause
	}
	return &canceledError{cause}
}

type canceledError struct{ cause error }

func (e *canceledError) Error() string { return e.cause.Error() }

func (e *canceledError) Unwrap() error { return e.cause }

func (e *canceledError) Is(target error) bool { return target == context.Canceled }

// A SizeError reports that something is larger than it may be.
type SizeError struct{ text string }

func (e *SizeError) Error() string { return e.text }

// TooLarge is true: an option can raise the limit.
func (e *SizeError) TooLarge() bool { return true }

// tlsFailure reports whether a certificate is the reason, or another failure of a handshake.
func tlsFailure(err error) bool { return CertificateFailure(err) || TLSAlert(err) }

// MaxName is how much of a name that a server made up is shown, in characters.
const MaxName = 100

// NewSizeError returns an error with this text.
func NewSizeError(text string) *SizeError { return &SizeError{text} }

// TooLargeArchive says of an archive that it exceeds the limit, in bytes.
func TooLargeArchive(file string, limit int64) error {
	return &SizeError{fmt.Sprintf("size of chart '%s' exceeds '%d' bytes limit", file, limit)}
}

// A NotSupportedError says what is not implemented yet.
type NotSupportedError struct{ What string }

func (e *NotSupportedError) Error() string { return e.What + " is not supported yet" }

// Finding is what is wrong.
func (*NotSupportedError) Finding() finding.Code { return finding.NotSupported }

// Transient is false.
func (e *NotSupportedError) Transient() bool { return false }
