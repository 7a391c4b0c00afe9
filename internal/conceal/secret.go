package conceal

import (
	"regexp"
	"strings"
	"sync"
)

// AddLogin adds the values of a Secret with a login, whatever their keys are, except the values
// that Flux defines to be public.
func (v *Values) AddLogin(data map[string][]byte) {
	private := make(map[string][]byte, len(data))
	for name, value := range data {
		if !public(name) {
			private[name] = value
		}
	}
	v.AddData(private)
}

// AddData adds the values of a Secret.
func (v *Values) AddData(data map[string][]byte) {
	if v == nil {
		return
	}
	for _, value := range data {
		v.Add(string(value))
		v.Add(Assigned(value)...)
	}
}

// Assigned returns the values that a text assigns to names such as password.
func Assigned(text []byte) []string {
	var list []string
	for _, match := range assignments().FindAllSubmatch(text, -1) {
		list = append(list, string(match[1]))
	}
	return list
}

// public reports whether the value of the key is visible to any client that connects to the host.
func public(name string) bool {
	switch name {
	case "address", "authorityHost", "tenantId", "githubAppBaseURL", "known_hosts", "ca.crt", "caFile", "trustpolicy.json":
		return true
	}
	return strings.HasSuffix(name, ".pub")
}

// assignments matches passwords in a file of a Secret, such as values of a release or a login of docker.
var assignments = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)[\w.-]*(?:` + strings.Join(sensitiveWords(), "|") + `)[\w.-]*["']?\s*[:=]\s*["']?([^"'\s,{}\[\]&|>]+)`)
})

// Sensitive reports whether the name of a field is that of a secret value.
func Sensitive(name string) bool {
	name = strings.ToLower(name)
	for _, word := range sensitiveWords() {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func sensitiveWords() []string {
	return []string{"password", "passwd", "passphrase", "token", "secret", "key", "auth", "credential"}
}
