package conceal

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxForms is the length of the longest value whose encodings are replaced, too.
	maxForms = 16 << 10
	// minEncoded is the length of the shortest part of an encoding that is replaced: that of a value of minText characters.
	minEncoded = 6
	// minLine is the length of a line that is replaced by itself, such as a line of a private key.
	minLine = 32
)

// Forms returns values, and the encodings of values that are long enough to be replaced everywhere.
func Forms(values []string) []string {
	var list []string
	for _, value := range values {
		if len(value) < minText {
			list = append(list, value)
			continue
		}
		list = append(list, forms(value)...)
	}
	return list
}

// forms returns a value and its encodings: base64 also as a part of a longer text.
func forms(value string) []string {
	list := []string{value}
	if trimmed := strings.TrimSpace(value); trimmed != value {
		list = append(list, trimmed)
	}
	if strings.Contains(value, "\n") {
		list = append(list, strings.ReplaceAll(value, "\n", ""))
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.Contains(line, " ") {
				list = append(list, line)
			}
		}
	}
	if len(value) > maxForms {
		return list
	}
	for _, text := range slices.Clone(list) {
		quoted := strconv.Quote(text)
		list = append(list, url.QueryEscape(text), url.PathEscape(text), quoted[1:len(quoted)-1])
		if asJSON, err := json.Marshal(text); err == nil {
			list = append(list, string(asJSON[1:len(asJSON)-1]))
		}
		list = append(list, encoded(text)...)
	}
	return list
}

// encoded returns the base64 of a text, by itself and as a part of a longer text, where it may begin at any of three
// bits of a character.
func encoded(text string) []string {
	var list []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		list = append(list, encoding.EncodeToString([]byte(text)))
		for skip := range 3 {
			whole := encoding.EncodeToString(append(make([]byte, skip), text...))
			// The first characters depend on the text before, the last on the text after it.
			from, to := (skip*8+5)/6, (skip+len(text))*8/6
			if to-from >= minEncoded {
				list = append(list, whole[from:to])
			}
		}
	}
	return list
}

// common reports whether a text is a frequent word of manifests and messages. If a Secret holds such a word, the field
// that it was put into is concealed, but not the word everywhere.
func common(text string) bool { return slices.Contains(commonWords(), text) }

func commonWords() []string {
	return []string{
		"apiVersion", "bucket", "cluster", "config", "configmap", "container", "default", "deployment", "development", "digest",
		"disabled", "enabled", "example", "fetched", "flux-system", "generic", "global", "helmchart", "helmrelease", "helmrepository",
		"image", "internal", "kube-system", "kubernetes", "latest", "localhost", "master", "metadata", "monitoring", "namespace",
		"password", "podinfo", "primary", "private", "prod-eu", "production", "provider", "public", "region", "registry", "release",
		"repository", "secret", "secrets", "server", "service", "source", "stable", "staging", "standard", "status", "string", "system",
		"testing", "username", "values", "version", "warning",
	}
}
