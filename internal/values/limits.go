package values

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	goyaml "go.yaml.in/yaml/v2"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// The limits of values are well above the size that Helm can install: a release has to fit into a Secret of 1 MiB.
const (
	// maxData is the limit of the data of all references of one release, in bytes, with aliases expanded.
	maxData = 8 << 20

	// maxDepth is the limit of nesting. In YAML text, a line of depth n begins with 2n blanks; real values stay below 30.
	maxDepth = 200

	// maxItems is the limit of the items of lists that target paths make with indexes: a[65536] makes a list of that length.
	maxItems = 1 << 18

	// maxIndexes is the limit of lists in lists in a target path, equal to Helm's limit of names in names.
	maxIndexes = 30

	// maxMerged is the limit of merged map entries: each reference with a target path merges all inline values.
	maxMerged = 8 << 20

	// maxText is the limit of the YAML text that is digested, in bytes.
	maxText = 64 << 20
)

var errTooMuch = limitErrorf("too many values to merge")

// limitError reports values that exceed a limit.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func limitErrorf(format string, args ...any) *limitError {
	return &limitError{fmt.Sprintf(format, args...)}
}

// spendData counts the bytes of a reference before they are decoded.
func (c *composition) spendData(data []byte) error {
	if err := bound.Check(data); err != nil {
		return limitErrorf("%v", err)
	}
	size := len(data)
	if bytes.ContainsRune(data, '&') && bytes.ContainsRune(data, '*') {
		// The library limits the number of values, but not their length.
		var expanded any
		if err := goyaml.Unmarshal(data, &expanded); err == nil {
			size = max(size, sizeOf(expanded, maxData))
		}
	}
	if c.dataSize += size; c.dataSize > maxData {
		return limitErrorf("the references have more than %d MiB of values", maxData>>20)
	}
	return nil
}

// sizeOf returns the approximate length of a value as text. It stops counting beyond the limit.
func sizeOf(v any, limit int) int {
	size := 2
	switch v := v.(type) {
	case string:
		size += len(v)
	case []any:
		for _, item := range v {
			if size > limit {
				break
			}
			size += sizeOf(item, limit-size)
		}
	case map[any]any:
		for key, value := range v {
			if size > limit {
				break
			}
			size += sizeOf(key, limit-size) + sizeOf(value, limit-size)
		}
	}
	return size
}

// checkDepth refuses values that are nested deeper than maxDepth.
func checkDepth(v any, depth int) error {
	if depth > maxDepth {
		return limitErrorf("nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if err := checkDepth(value, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkDepth(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// spendItems counts the items of the lists that an expression of Helm's --set may make, and refuses too many lists in lists.
// It counts everything that may be an index.
func (c *composition) spendItems(expression string) error {
	indexes := 0
	for {
		before, after, found := strings.Cut(expression, "[")
		if !found {
			return nil
		}
		if before != "" {
			indexes = 0
		}
		inside, rest, found := strings.Cut(after, "]")
		expression = after
		n, err := strconv.Atoi(strings.ReplaceAll(inside, `\`, ""))
		if !found || err != nil || n < 0 {
			indexes = 0
			continue
		}
		expression = rest
		if indexes++; indexes > maxIndexes {
			return limitErrorf("more than %d nested lists", maxIndexes)
		}
		if n > maxItems || c.items+n >= maxItems {
			return limitErrorf("lists of more than %d items", maxItems)
		}
		c.items += n + 1
	}
}

// limited is a writer that fails after the given number of bytes.
type limited struct {
	to   io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, limitErrorf("more than %d MiB of text", maxText>>20)
	}
	return l.to.Write(b)
}
