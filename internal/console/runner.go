package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
)

// maxHeld is the limit, in bytes, of the document that RunnerLog holds until it is complete.
const maxHeld = 64 << 20

var errRunnerCommand = errors.New("the output has lines that GitHub Actions would run as commands, and cannot be escaped: redirect it to a file")

// RunnerLog is a stream that the runner of GitHub Actions may read. No line that is written to it is a workflow command:
// JSON and YAML are written with other characters for the same values, other text is altered as the lines for people are.
// A document is held until it is complete; Close writes the last document.
type RunnerLog struct {
	w    io.Writer
	most int // limit of held, in bytes
	held []byte
	seen int  // bytes of held whose lines were read
	long bool // the first part of the document was already written
}

// NewRunnerLog returns a RunnerLog that writes to w.
func NewRunnerLog(w io.Writer) *RunnerLog { return &RunnerLog{w: w, most: maxHeld} }

// Write holds text, and writes the documents that are complete.
func (l *RunnerLog) Write(p []byte) (int, error) {
	from := len(l.held) // the text before it has no further line end
	l.held = append(l.held, p...)
	for {
		end := bytes.IndexByte(l.held[from:], '\n')
		if end < 0 {
			break
		}
		from += end + 1
		if bytes.HasPrefix(l.held[l.seen:from], []byte("---")) {
			from -= l.seen
			if err := l.flush(l.seen); err != nil {
				return 0, err
			}
			l.long = false
		}
		l.seen = from
	}
	if len(l.held) > l.most {
		l.long = true
		if err := l.flush(l.seen); err != nil {
			return 0, err
		}
		if len(l.held) > l.most {
			return 0, errRunnerCommand
		}
	}
	return len(p), nil
}

// Close writes the held text.
func (l *RunnerLog) Close() error { return l.flush(len(l.held)) }

func (l *RunnerLog) flush(n int) error {
	text := l.held[:n]
	if commanding(string(text)) {
		var err error
		if text, err = l.harmless(text); err != nil {
			return err
		}
	}
	_, err := l.w.Write(text)
	l.held, l.seen = l.held[n:], 0
	return err
}

func (l *RunnerLog) harmless(text []byte) ([]byte, error) {
	if l.long {
		return nil, errRunnerCommand
	}
	if isJSON(text) { // in JSON, the mark is in a string
		return bytes.ReplaceAll(text, []byte("##["), []byte(`#\u0023[`)), nil
	}
	doc, err := parseOne(text)
	if err != nil || doc.Content[0].Kind == yaml.ScalarNode {
		return []byte(defuse(string(text))), nil
	}
	edit.Each(doc, quoteCommands)
	var b bytes.Buffer
	if bytes.HasPrefix(text, []byte("---")) {
		b.WriteString("---\n")
	}
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	_ = errors.Join(encoder.Encode(doc), encoder.Close()) // an error shows as a difference below
	written := bytes.ReplaceAll(b.Bytes(), []byte("##["), []byte(`#\x23[`))
	if again, err := parseOne(written); err != nil || !sameNodes(doc, again) || commanding(string(written)) {
		return nil, errRunnerCommand
	}
	return written, nil
}

func isJSON(text []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// parseOne returns the only document of text, or an error if there are several.
func parseOne(text []byte) (*yaml.Node, error) {
	var doc, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&doc); err != nil {
		return nil, err
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errRunnerCommand
	}
	return &doc, nil
}

// quoteCommands double-quotes scalars that contain "::", with which a line of the log could begin, or the old mark. It also
// quotes folded scalars, which the encoder may fold at other places.
func quoteCommands(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && (n.Style&yaml.FoldedStyle != 0 || strings.Contains(n.Value, "::") || strings.Contains(n.Value, "##[")) {
		n.Style = n.Style&yaml.TaggedStyle | yaml.DoubleQuotedStyle
	}
}

func sameNodes(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || a.ShortTag() != b.ShortTag() || a.Anchor != b.Anchor || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !sameNodes(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// commanding reports whether the runner would obey a line of text.
func commanding(text string) bool { return defuse(text) != text }

func unseen(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }

// defuse alters text for people where the runner would obey it. The runner ends lines at \n and \r, and skips white space and a
// byte order mark before "::"; it obeys the old form, "##[", anywhere in a line.
func defuse(text string) string {
	text = strings.ReplaceAll(text, "##[", "## [")
	var b strings.Builder
	for text != "" {
		end := strings.IndexAny(text, "\r\n") + 1
		if end == 0 {
			end = len(text)
		}
		line := text[:end]
		if trimmed := strings.TrimLeftFunc(line, unseen); strings.HasPrefix(trimmed, "::") {
			line = strings.TrimSuffix(line, trimmed) + ": :" + trimmed[2:]
		}
		b.WriteString(line)
		text = text[end:]
	}
	return b.String()
}
