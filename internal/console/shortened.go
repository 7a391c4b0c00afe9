package console

import (
	"regexp"
)

const (
	longestName  = 253 // that Kubernetes accepts
	shownOfName  = 200
	shownOfAgain = 20 // where the line has shown it before
)

// shortened cuts names that are longer than any name can be, so that a hostile one cannot fill a terminal or a log.
func shortened(text string) string {
	if len(text) <= longestName {
		return text
	}
	seen := map[string]bool{}
	return longNames().ReplaceAllStringFunc(text, func(name string) string {
		shown := shownOfName
		if seen[name] {
			shown = shownOfAgain
		}
		seen[name] = true
		return name[:shown] + "…"
	})
}

// longNames matches what is written like a name and is longer than one.
func longNames() *regexp.Regexp {
	return regexp.MustCompile(`[-.0-9A-Za-z_]{254,}`)
}
