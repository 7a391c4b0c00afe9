package plan

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/helmsrc/helmsrc/internal/diff"
)

const (
	// maxDiff is the limit of all diffs of one release, in bytes.
	maxDiff = 256 << 10
	// maxLines is the limit of lines of a text that is compared line by line.
	maxLines = 50_000
)

// Diff is a unified diff of the files of a release.
type Diff struct {
	// Of is values, chart or manifests.
	Of string `json:"of"`
	// Text holds the diffs of the files one after the other.
	Text string `json:"text"`
}

// Files compares two sets of files, sorted by name, in at most maxDiff bytes. It returns "" if they are equal.
func Files(before, after map[string][]byte) string {
	var b strings.Builder
	left := 0
	eachKey(before, after, func(name, change string) {
		old, now := before[name], after[name]
		if change == changeChanged && bytes.Equal(old, now) {
			return
		}
		text := file(name, change, old, now)
		if b.Len()+len(text) > maxDiff {
			left++
			return
		}
		b.WriteString(text)
	})
	if left > 0 {
		fmt.Fprintf(&b, "%d more files differ\n", left)
	}
	return b.String()
}

func file(name, change string, old, now []byte) string {
	from, to := "a/"+name, "b/"+name
	switch change {
	case changeAdded:
		from = "/dev/null"
	case changeRemoved:
		to = "/dev/null"
	}
	if !isText(old) || !isText(now) {
		return fmt.Sprintf("Binary files %s and %s differ\n", from, to)
	}
	if a, b := bytes.Count(old, []byte("\n")), bytes.Count(now, []byte("\n")); a > maxLines || b > maxLines {
		return fmt.Sprintf("--- %s\n+++ %s\n@@ too long to be compared: %d and %d lines @@\n", from, to, a, b)
	}
	return diff.Unified(from, to, old, now, nil)
}

func isText(data []byte) bool {
	return !bytes.ContainsRune(data, 0) && utf8.Valid(data)
}
