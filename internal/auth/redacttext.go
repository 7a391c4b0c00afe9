package auth

import (
	"net/url"
	"strings"
)

const (
	schemeSeparator = "://"
	letters         = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits          = "0123456789"
	afterURL        = " \t\n\f\r\"'<>\\"
	beforeLogin     = " \t\n\f\r\"'<>/@"
)

// RedactText redacts the URLs in a text, also those that lack a scheme. It takes time in proportion to the text.
func RedactText(text string) string { return redactBareLogins(replaceURLs(text, redactURL)) }

// RedactLogins redacts the URLs with a login in a text. Other URLs keep their queries.
func RedactLogins(text string) string {
	return redactBareLogins(replaceURLs(text, func(match string) string {
		if u, err := url.Parse(match); err == nil && u.User == nil {
			return match
		}
		return RedactURL(match)
	}))
}

// redactURL keeps the punctuation that follows a URL in a sentence.
func redactURL(match string) string {
	address := strings.TrimRight(match, ":,;")
	return RedactURL(address) + match[len(address):]
}

// replaceURLs takes too many characters for a part of a URL rather than too few: redacting the text after a URL does no
// harm, but the rest of a URL may be a password.
func replaceURLs(text string, replace func(string) string) string {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		at := strings.Index(text[from:], schemeSeparator)
		switch {
		case at < 0 && done == 0:
			return text // without a copy: records may have many long messages
		case at < 0:
			b.WriteString(text[done:])
			return b.String()
		}
		at += from
		start := from + len(strings.TrimRight(text[from:at], letters+digits+"+.-"))
		start = at - len(strings.TrimLeft(text[start:at], digits+"+.-"))
		from = at + len(schemeSeparator)
		if start == at {
			continue
		}
		length := ending(text[from:], afterURL)
		if length == 0 {
			continue
		}
		from += length
		b.WriteString(text[done:start])
		b.WriteString(replace(text[start:from]))
		done = from
	}
}

// ending returns where the first of some characters is, or the length of the text.
func ending(text, chars string) int {
	if i := strings.IndexAny(text, chars); i >= 0 {
		return i
	}
	return len(text)
}

// redactBareLogins replaces the password of user:password@host. References to images are left alone, whose tag stands
// before the digest as a password before the host.
func redactBareLogins(text string) string {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		at := strings.IndexByte(text[from:], '@')
		switch {
		case at < 0 && done == 0:
			return text
		case at < 0:
			b.WriteString(text[done:])
			return b.String()
		}
		at += from
		login := text[from+strings.LastIndexAny(text[from:at], beforeLogin)+1 : at]
		_, password, _ := strings.Cut(login, ":") // the user may have been cut off with a URL
		from = at + 1
		host := len(text[from:]) - len(strings.TrimLeft(text[from:], letters+digits+".-"))
		if password == "" || host == 0 {
			continue
		}
		from += host
		if !strings.HasPrefix(text[at:], "@sha") {
			b.WriteString(text[done : at-len(password)])
			b.WriteString(redacted)
			done = at
		}
	}
}
