package console

import "strings"

const (
	longestName  = 253 // the limit of Kubernetes
	shownOfName  = 200
	shownOfAgain = 20 // if the line has shown it before

	nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
)

// shortened cuts names that are longer than Kubernetes allows, so that a hostile name cannot fill a terminal or a log.
func shortened(text string) string {
	if len(text) <= longestName {
		return text
	}
	var b strings.Builder
	seen := map[string]bool{}
	for text != "" {
		rest := strings.TrimLeft(text, nameCharacters)
		name := text[:len(text)-len(rest)]
		switch {
		case len(name) <= longestName:
			b.WriteString(name)
		case seen[name]:
			b.WriteString(name[:shownOfAgain] + "…")
		default:
			b.WriteString(name[:shownOfName] + "…")
			seen[name] = true
		}
		next := strings.IndexAny(rest, nameCharacters)
		if next < 0 {
			next = len(rest)
		}
		b.WriteString(rest[:next])
		text = rest[next:]
	}
	return b.String()
}
