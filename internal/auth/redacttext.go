package auth

import (
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// RedactText redacts the URLs in a text, also those that lack a scheme.
func RedactText(text string) string {
	if strings.Contains(text, "://") {
		text = urlPattern().ReplaceAllStringFunc(text, redactURL)
	}
	if strings.Contains(text, "@") {
		text = userinfoPattern().ReplaceAllStringFunc(text, redactBareUserinfo)
	}
	return text
}

// RedactLogins redacts the URLs with a login in a text. The others are left alone, with their queries.
func RedactLogins(text string) string {
	text = urlPattern().ReplaceAllStringFunc(text, func(match string) string {
		if u, err := url.Parse(match); err == nil && u.User == nil {
			return match
		}
		return RedactURL(match)
	})
	return userinfoPattern().ReplaceAllStringFunc(text, redactBareUserinfo)
}

// urlPattern takes in more than the characters of a URL rather than less: what
// follows a URL is harmless, what is left of one may be a password.
var urlPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>\\]+`)
})

// redactURL leaves the punctuation that a sentence puts after a URL.
func redactURL(match string) string {
	address := strings.TrimRight(match, ":,;")
	return RedactURL(address) + match[len(address):]
}

// userinfoPattern matches user, password and host of a URL without a scheme.
var userinfoPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^\s"'/:@<>]+:[^\s"'/@<>]+@[A-Za-z0-9.-]+`)
})

// redactBareUserinfo leaves references to images alone, whose tag stands before the
// digest as a password before the host.
func redactBareUserinfo(match string) string {
	at := strings.LastIndexByte(match, '@')
	if strings.HasPrefix(match[at:], "@sha") {
		return match
	}
	user, _, _ := strings.Cut(match, ":")
	return user + ":REDACTED" + match[at:]
}
