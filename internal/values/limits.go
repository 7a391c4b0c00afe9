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

// What may be in values is bounded well above what Helm can install: a release has to fit into a Secret of 1 MiB.
const (
	// maxData bounds what the references of one release hold in all, in bytes, aliases expanded.
	maxData = 8 << 20

	// maxDepth bounds nesting. In YAML text a line of depth n begins with 2n blanks; real values stay below 30.
	maxDepth = 200

	// maxItems bounds the items of the lists that indexes of target paths make: a[65536] makes a list of that length.
	maxItems = 1 << 18

	// maxIndexes bounds the lists in lists of a target path: Helm's own bound for names in names.
	maxIndexes = 30

	// maxMerged bounds how many entries of maps are merged: each reference with a target path merges all inline values.
	maxMerged = 8 << 20

	// maxText bounds the YAML text whose digest is made.
	maxText = 64 << 20
)

var errTooMuch = limitErrorf("too many values to merge")

// limitError is for values that are larger than any real ones.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

func limitErrorf(format string, args ...any) *limitError {
	return &limitError{fmt.Sprintf(format, args...)}
}

// spendData counts what a reference holds, before anything is made of it.
func (c *composition) spendData(data []byte) error {
	if err := bound.Check(data); err != nil {
		return limitErrorf("%v", err)
	}
	size := len(data)
	if bytes.ContainsRune(data, '&') && bytes.ContainsRune(data, '*') {
		// The library bounds the number of values, but not how long they are.
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

// sizeOf is about how long a value is as text. It stops counting beyond the limit.
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

// checkDepth refuses what is nested deeper than anything that is meant.
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

// spendItems counts the items of the lists that an expression of Helm's --set may make, and refuses lists in lists
// without end. It takes for an index whatever looks like one.
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
			return limitErrorf("more than %d lists in each other", maxIndexes)
		}
		if n > maxItems || c.items+n >= maxItems {
			return limitErrorf("lists of more than %d items", maxItems)
		}
		c.items += n + 1
	}
}

// limited refuses to write more than so many bytes.
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
