package verify

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxErrorText bounds a message in characters, parts of which may come from a server.
const maxErrorText = 1000

func oneLine(text string) string { return finding.OneLine(text, maxErrorText) }

// A RefusedError reports that there are signatures, but none that counts.
type RefusedError struct {
	Message string
	Err     error // the reasons, may be nil
	hint    string
}

func (e *RefusedError) Error() string {
	if e.Err == nil {
		return oneLine(e.Message)
	}
	return oneLine(e.Message + ": " + e.Err.Error())
}

func (e *RefusedError) Unwrap() error { return e.Err }

// Hint says what may be the reason, or is empty.
func (e *RefusedError) Hint() string { return e.hint }

// Integrity is true.
func (e *RefusedError) Integrity() bool { return true }

// Transient is false.
func (e *RefusedError) Transient() bool { return false }

// A LimitError reports that there is more of something than is looked at. It is a refusal: a signature that is not
// looked at does not count.
type LimitError struct {
	What string // "signatures of sha256:…"
	Max  int64
	Unit string // "bytes", or empty
}

func (e *LimitError) Error() string {
	if e.Unit != "" {
		return fmt.Sprintf("%s exceeds the limit of %d %s", oneLine(e.What), e.Max, e.Unit)
	}
	return fmt.Sprintf("%s: more than the limit of %d", oneLine(e.What), e.Max)
}

// Integrity is true.
func (e *LimitError) Integrity() bool { return true }

// Transient is false.
func (e *LimitError) Transient() bool { return false }

// A SettingsError reports that nothing can be verified with the keys, certificates or policy that were given.
type SettingsError struct {
	Message string
	Err     error // may be nil
	hint    string
}

func (e *SettingsError) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

func (e *SettingsError) Unwrap() error { return e.Err }

// Hint says what to write instead, or is empty.
func (e *SettingsError) Hint() string { return e.hint }

// Transient is false.
func (e *SettingsError) Transient() bool { return false }

// unsigned says that there is no signature at all of the kind that is required. Such a chart is not trusted.
func unsigned(text string) error {
	return &finding.Problem{Code: finding.Unsigned, Class: finding.Untrusted | finding.Lasting, Text: text}
}

// badAnswer describes an answer with another status than 200.
func badAnswer(u *url.URL, code int) error {
	class := finding.Retryable(finding.TransientStatus(code))
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		class |= finding.Login
	}
	return &finding.Problem{
		Code: finding.OfStatus(code), Class: class, Text: fmt.Sprintf("GET %s: unexpected status %d %s", fetch.ShownURL(u), code, http.StatusText(code)),
	}
}
