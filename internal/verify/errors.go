package verify

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxErrorText is the limit, in characters, of a message. Parts of it may come from a server.
const maxErrorText = 1000

func oneLine(text string) string { return finding.OneLine(text, maxErrorText) }

// A RefusedError reports that there are signatures, but that no signature counts. Err has the reasons; it may be nil.
type RefusedError struct{ finding.Problem }

// refused returns a RefusedError. The hint may be empty, and err nil.
func refused(hint, message string, err error) error {
	return &RefusedError{finding.Problem{Class: finding.Untrusted | finding.Lasting, Text: oneLine(withReason(message, err)), Advice: hint, Err: err}}
}

func withReason(message string, err error) string {
	if err == nil {
		return message
	}
	return message + ": " + err.Error()
}

// A limitError reports that a limit of numbers or bytes is exceeded. It is a refusal: a signature that is not read does
// not count.
type limitError struct{ finding.Problem }

// tooMany reports that only limit items, such as "signatures of sha256:…", are read.
func tooMany(what string, limit int) error {
	return newLimitError(fmt.Sprintf("%s: more than the limit of %d", oneLine(what), limit))
}

// tooLarge reports that an item exceeds its limit, in bytes.
func tooLarge(what string, limit int64) error {
	return newLimitError(fmt.Sprintf("%s exceeds the limit of %d bytes", oneLine(what), limit))
}

func newLimitError(text string) error {
	return &limitError{finding.Problem{Class: finding.Untrusted | finding.Lasting, Text: text}}
}

// A SettingsError reports that the given keys, certificates or policy cannot verify anything.
type SettingsError struct{ finding.Problem }

// unusable returns a SettingsError. The hint may be empty, and err nil.
func unusable(hint, message string, err error) error {
	return &SettingsError{finding.Problem{Class: finding.Lasting, Text: withReason(message, err), Advice: hint, Err: err}}
}

// unsigned reports that there is no signature at all of the required kind. Such a chart is not trusted.
func unsigned(text string) error {
	return &finding.Problem{Code: finding.Unsigned, Class: finding.Untrusted | finding.Lasting, Text: text}
}

// badAnswer returns the error of an answer with a status other than 200.
func badAnswer(u *url.URL, code int) error {
	class := finding.Retryable(finding.TransientStatus(code))
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		class |= finding.Login
	}
	return &finding.Problem{
		Code: finding.OfStatus(code), Class: class, Text: fmt.Sprintf("GET %s: unexpected status %d %s", fetch.ShownURL(u), code, http.StatusText(code)),
	}
}
