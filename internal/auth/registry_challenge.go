package auth

import (
	"net/http"
	"slices"
	"strings"
)

// maxChallenges is the limit of challenges read from the WWW-Authenticate headers.
const maxChallenges = 16

// challenge is one way to log in that a registry offers in a WWW-Authenticate header.
type challenge struct {
	scheme string // lower case
	params map[string]string
}

// parseChallenges parses every challenge of every WWW-Authenticate header. It skips challenges that it cannot parse: a
// registry that offers an unknown scheme beside Bearer is still usable.
func parseChallenges(h http.Header) []challenge {
	var all []challenge
	for _, value := range h.Values("WWW-Authenticate") {
		all = append(all, parseChallengeHeader(value)...)
		if len(all) >= maxChallenges {
			return all[:maxChallenges]
		}
	}
	return all
}

// parseChallengeHeader follows RFC 9110, section 11.6.1: schemes and parameters are both separated by commas, so a word
// is a scheme if no equals sign follows.
func parseChallengeHeader(s string) []challenge {
	var out []challenge
	for len(out) < maxChallenges {
		s = strings.TrimLeft(s, " \t,")
		word, rest := cutToken(s)
		if word == "" {
			return out
		}
		value, after, isParam := paramValue(rest)
		switch {
		case !isParam:
			out = append(out, challenge{scheme: strings.ToLower(word), params: map[string]string{}})
			s = rest
		case len(out) == 0:
			return nil
		default:
			out[len(out)-1].params[strings.ToLower(word)] = value
			s = after
		}
	}
	return out
}

// paramValue parses the value of a parameter, if an equals sign follows its name.
func paramValue(s string) (value, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(s, "=") {
		return "", "", false
	}
	s = strings.TrimLeft(s[1:], " \t")
	if strings.HasPrefix(s, `"`) {
		value, rest = cutQuoted(s[1:])
		return value, rest, true
	}
	end := strings.IndexAny(s, " \t,")
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:], true
}

func cutQuoted(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

func cutToken(s string) (token, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// chooseChallenge prefers Bearer: its tokens are good for one repository and a few minutes.
func chooseChallenge(all []challenge) (challenge, bool) {
	for _, scheme := range []string{"bearer", "basic"} {
		for _, c := range all {
			if c.scheme == scheme && (scheme == "basic" || c.params["realm"] != "") {
				return c, true
			}
		}
	}
	return challenge{}, false
}

// pullScope returns the scope for reading a repository. For paths outside of a repository it returns "".
func pullScope(path string) string {
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return ""
	}
	end := -1
	for _, part := range []string{"/manifests/", "/blobs/", "/tags/", "/referrers/"} {
		end = max(end, strings.LastIndex(rest, part))
	}
	if end <= 0 {
		return ""
	}
	return "repository:" + rest[:end] + ":pull"
}

// mergeScopes adds the registry's scopes to the needed ones, without the right to write or delete: a caller that needs
// this right names it itself. The result is sorted and has no duplicates.
func mergeScopes(needed, asked string) string {
	scopes := strings.Fields(needed)
	for _, s := range strings.Fields(asked) {
		if len(scopes) == maxChallenges {
			break
		}
		if s = readOnly(s); s != "" {
			scopes = append(scopes, s)
		}
	}
	slices.Sort(scopes)
	return strings.Join(slices.Compact(scopes), " ")
}

// readOnly removes the writing actions from a scope of the form type:name:action,action. Without other actions it returns "".
func readOnly(scope string) string {
	i := strings.LastIndex(scope, ":")
	if i < 0 {
		return ""
	}
	actions := slices.DeleteFunc(strings.Split(scope[i+1:], ","), func(a string) bool {
		return a == "push" || a == "delete" || a == "*" || a == ""
	})
	if len(actions) == 0 {
		return ""
	}
	return scope[:i+1] + strings.Join(actions, ",")
}

// repositoryOf is the name in a scope made by pullScope.
func repositoryOf(scope string) string {
	name := strings.TrimPrefix(scope, "repository:")
	return strings.TrimSuffix(name, ":pull")
}
