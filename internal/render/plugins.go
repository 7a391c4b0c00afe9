package render

import (
	"os"
	"strings"
)

// plugins resolves generators, transformers and validators: files, directories, or configurations in place.
func (p *pathResolver) plugins(field string, entries []string) []string {
	var kept []string
	for i, entry := range entries {
		if isInline(entry) {
			kept = append(kept, entry)
		} else if path, ok := p.one(entry, anything, field, i); ok {
			kept = append(kept, path)
		}
	}
	return kept
}

// isInline reports whether an entry is an inline configuration, and not a path.
func isInline(entry string) bool { return strings.ContainsAny(entry, "\n{") }

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
