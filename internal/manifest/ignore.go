package manifest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// ignoreMark begins a comment that silences findings: `# helmsrc:ignore HS012,HS013 why`.
const ignoreMark = "helmsrc:ignore"

// Ignores lists the helmsrc:ignore comments in an object. A comment for the line on which the object begins, or for
// the line of its name, applies to the whole object.
func (o *Object) Ignores() []finding.Ignore {
	if o.Origin != nil {
		return o.Origin.Ignores()
	}
	d := o.at.doc
	if d == nil || d.json || !bytes.Contains(d.text, []byte(ignoreMark)) {
		return nil
	}
	first, last := o.at.lines(o.Pos.Line)
	name := o.Position("metadata", "name")
	var list []finding.Ignore
	for _, i := range d.ignores() {
		if i.Line < first || i.Line >= last {
			continue
		}
		i.Whole, i.First, i.Last = i.Line == o.Pos.Line || i.Line == name.Line, first, last
		list = append(list, i)
	}
	return list
}

// lines returns the range of lines in the file that belong to an object: the whole document, or up to the next item.
func (l location) lines(begin int) (first, last int) {
	endless := l.doc.line + bytes.Count(l.doc.text, []byte("\n")) + 2
	if len(l.path) == 0 {
		return l.doc.line, endless
	}
	root, err := l.doc.root()
	if err != nil {
		return begin, endless
	}
	i, _ := l.path[len(l.path)-1].(int)
	_, items := locateValue(root, l.path[:len(l.path)-1])
	if next := element(items, i+1); next != nil {
		return begin, l.doc.pos(next).Line
	}
	return begin, endless
}

// readIgnores reads the comments of a document, line by line. A comment on its own line applies to the next line that
// is not empty or a comment.
func (d *document) readIgnores() []finding.Ignore {
	var all, waiting []finding.Ignore
	var texts []edit.Span
	if root, err := d.root(); err == nil && root != nil {
		texts = edit.Texts(d.text, root)
	}
	isText := func(at int) bool {
		i, exact := slices.BinarySearchFunc(texts, at, func(s edit.Span, at int) int { return s.From - at })
		return exact || i > 0 && at < texts[i-1].To
	}
	line := d.line
	for at, n := 0, 0; at < len(d.text); at += n {
		line++
		n = edit.LineLength(d.text[at:])
		content, comment := splitComment(string(bytes.TrimRight(d.text[at:at+n], "\r\n")), func(i int) bool { return isText(at + i) })
		alone := strings.TrimSpace(content) == ""
		if rest, ok := ignoring(comment); ok {
			pos := Pos{File: d.file, Line: line, Column: 1 + len([]rune(content))}
			codes, reason := ignoredCodes(rest)
			i := finding.Ignore{Pos: pos, Length: len(comment), Line: line, Codes: codes, Reason: reason}
			if alone {
				waiting = append(waiting, i)
				continue
			}
			all = append(all, i)
		}
		if alone {
			continue
		}
		for _, i := range waiting {
			i.Line = line
			all = append(all, i)
		}
		waiting = nil
	}
	return append(all, waiting...)
}

// splitComment cuts a line where an ignore comment, or a comment on its own line, begins. A # inside a text does not count.
func splitComment(line string, isText func(int) bool) (content, comment string) {
	for at := 0; at < len(line); {
		n := strings.Index(line[at:], "#")
		if n < 0 {
			break
		}
		at += n
		if (at == 0 || line[at-1] == ' ' || line[at-1] == '\t') && !isText(at) {
			if _, ok := ignoring(line[at:]); ok || strings.TrimSpace(line[:at]) == "" {
				return line[:at], line[at:]
			}
		}
		at++
	}
	return line, ""
}

// ignoring reports whether a comment silences findings, and returns the text after the mark.
func ignoring(comment string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(strings.TrimLeft(comment, "# \t"), ignoreMark)
	return rest, ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// ignoredCodes returns the codes of a list separated by commas. The words after the list are the reason.
func ignoredCodes(text string) (codes []string, reason string) {
	fields := strings.Fields(text)
	for i, field := range fields {
		for code := range strings.SplitSeq(field, ",") {
			if code != "" {
				codes = append(codes, code)
			}
		}
		if !strings.HasSuffix(field, ",") {
			return codes, strings.Join(fields[i+1:], " ")
		}
	}
	return codes, ""
}
