package auth

import (
	"errors"
	"net/url"
	"strings"
)

// RedactURL replaces the password, the values of the query and the fragment of a URL by REDACTED. It reads the text
// itself instead of parsing it, because URLs that do not parse are the ones that get printed.
//
// A user name stays readable if there is a password beside it. Alone it goes as well: tokens are written there.
func RedactURL(raw string) string {
	if i := ambiguousUserinfo(raw); i >= 0 {
		return raw[:schemeEnd(raw)] + redacted + "@" + RedactURL("//" + raw[i+1:])[2:]
	}
	rest, fragment, hasFragment := strings.Cut(raw, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	text := redactUserinfo(rest)
	if hasQuery {
		text += "?" + redactQuery(query)
	}
	if hasFragment && fragment != "" {
		text += "#" + redacted
	}
	return text
}

// schemeEnd returns where the authority begins.
func schemeEnd(raw string) int {
	if i := strings.Index(raw, "://"); i >= 0 && !strings.ContainsAny(raw[:i], "/?#@") {
		return i + len("://")
	}
	if strings.HasPrefix(raw, "//") {
		return len("//")
	}
	return 0
}

// ambiguousUserinfo returns the index of the last @ if the text before it may be a password with a character that
// should have been escaped, else -1: "https://user:pa?ss@host", "https://user:pa/ss@host".
func ambiguousUserinfo(raw string) int {
	start := schemeEnd(raw)
	if start == 0 {
		return -1
	}
	last := strings.LastIndex(raw, "@")
	end := strings.IndexAny(raw[start:], "/?#")
	if end < 0 || last < start+end || !strings.Contains(raw[start:start+end], ":") {
		return -1
	}
	if raw[start+end] != '/' {
		return last
	}
	if _, err := url.Parse(raw); err != nil {
		return last
	}
	return -1
}

// redactUserinfo is given a URL without query and fragment.
func redactUserinfo(raw string) string {
	start := schemeEnd(raw)
	end := len(raw)
	if i := strings.Index(raw[start:], "/"); i >= 0 {
		end = start + i
	}
	at := strings.LastIndex(raw[start:end], "@")
	if at < 0 {
		return raw
	}
	at += start
	username, password, hasPassword := strings.Cut(raw[start:at], ":")
	switch {
	case hasPassword && password != "" && password != tokenIsUsername:
		return raw[:start] + username + ":" + redacted + raw[at:]
	case !hasPassword && publicUsername(raw[:start], username):
		return raw
	default:
		return raw[:start] + redacted + raw[at:]
	}
}

// tokenIsUsername is the password that GitHub documents for a token that takes the place of the user name.
const tokenIsUsername = "x-oauth-basic"

// publicUsername reports whether a user name without password is public: SSH does not send its secrets in URLs.
func publicUsername(scheme, username string) bool {
	return username == "git" || scheme == "ssh://" || scheme == "git+ssh://"
}

// redactQuery keeps the names, so that the reader sees which parameter was there. A parameter without a value may be
// a token itself.
func redactQuery(query string) string {
	params := strings.Split(query, "&")
	for i, param := range params {
		name, _, found := strings.Cut(param, "=")
		switch {
		case param == gitService: // the query of every request to a Git server
		case found:
			params[i] = name + "=" + redacted
		case param != "":
			params[i] = redacted
		}
	}
	return strings.Join(params, "&")
}

const gitService = "service=git-upload-pack"

// ParseURL is url.Parse with an error that can be shown.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, RedactURLError(err)
	}
	return u, nil
}

// RedactURLError returns the *url.Error in err with its URL redacted, or err without a *url.Error.
func RedactURLError(err error) error {
	var e *url.Error
	if !errors.As(err, &e) {
		return err
	}
	redactedErr := *e
	redactedErr.URL = RedactURL(e.URL)
	// The parser quotes the piece that it does not understand, which may be a piece of the password.
	if e.Op == "parse" && strings.Contains(e.URL, "@") && strings.Contains(e.Err.Error(), `"`) {
		redactedErr.Err = errMalformedURL
	}
	return &redactedErr
}

var errMalformedURL = errors.New("malformed user, password, host or port")

// ScrubURL replaces the password and the query values of a URL in a text from outside. Servers and proxies often quote
// the URL of the request.
func ScrubURL(text string, u *url.URL) string {
	if _, has := u.User.Password(); has || !publicUsername(u.Scheme+"://", u.User.Username()) {
		text = (*Identity)(nil).WithUserinfo(u.User).Scrub(text)
	}
	for _, param := range strings.Split(u.RawQuery, "&") {
		_, value, found := strings.Cut(param, "=")
		if !found {
			value = param
		}
		plain, _ := url.QueryUnescape(value) // "" if it is invalid
		text = scrub(text, value, plain)
	}
	return text
}
