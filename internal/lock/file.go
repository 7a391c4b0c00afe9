package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
)

const header = "# " + FileName + " pins what the manifests resolve to. \"helmsrc lock\" writes it; commit it, and do not edit it. It ends with \"# end\".\n"

// end is the last line, without which a file is truncated. A count of the entries would change with each entry: two branches
// that add one each would conflict, or agree on a wrong number.
const end = "# end\n"

// unended is the header of files of an earlier version, which have no last line.
const unended = "# " + FileName + " pins what the manifests resolve to. \"helmsrc lock\" writes it; commit it, and do not edit it.\n"

// An Error reports an unusable lock file. It never quotes more of the file than names of fields and objects.
type Error struct {
	Line int // from 1, or 0 without a single wrong line
	Msg  string
	Hint string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

// A fileEntry is an entry in the file, with its sum.
type fileEntry struct {
	Entry `yaml:",inline"`
	Sum   string `yaml:"sum"`
}

// Write returns the bytes of a lock file. Equal locks have equal bytes.
func (l *Lock) Write() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n", APIVersion, Kind)
	if len(l.entries) == 0 {
		b.WriteString("entries: []\n" + end)
		return b.Bytes(), nil
	}
	b.WriteString("entries:\n")
	for _, e := range l.Entries() {
		if problem := e.problem(); problem != "" {
			return nil, errors.New(problem)
		}
		start := b.Len()
		encoder := yaml.NewEncoder(&b)
		encoder.SetIndent(2)
		if err := errors.Join(encoder.Encode([]*Entry{e}), encoder.Close()); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, sumLine, sum(b.Bytes()[start:]))
	}
	b.WriteString(end)
	return b.Bytes(), nil
}

const sumLine = "  sum: %s\n"

// sum returns the sum of the lines of an entry, for its last line. Half a SHA-256 is enough against accidents; a deliberate
// change can include a new sum.
func sum(lines []byte) string {
	h := sha256.Sum256(lines)
	return hex.EncodeToString(h[:16])
}

// maxValues is the limit of the values of a lock file: an entry has some 30.
const maxValues = 4 << 20

// maxEntry is the limit, in bytes, of an entry, and of the header. A chart with a thousand dependencies has some 400 KiB.
const maxEntry = 1 << 20

// Read parses a lock file. Errors are of type *Error. Entries are decoded one after the other, so that at most one of them is
// in memory as a tree.
func Read(content []byte) (*Lock, error) {
	if len(content) > MaxBytes {
		return nil, &Error{Msg: fmt.Sprintf("the lock file is larger than %d MiB", MaxBytes>>20)}
	}
	if bytes.Contains(content, []byte("\r\n")) { // Git for Windows may have added them
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	if line := conflict(content); line != 0 {
		return nil, &Error{Line: line, Msg: "the lock file has a conflict marker",
			Hint: "choose either side, then run helmsrc lock: it keeps matching entries and resolves the other objects"}
	}
	if bound.Values(content) > maxValues {
		return nil, &Error{Msg: fmt.Sprintf("the lock file has more than %d values", maxValues), Hint: restore}
	}
	head, rest := cut(content)
	if err := head.check(); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(content, []byte(unended)) {
		whole := false
		if rest, whole = bytes.CutSuffix(rest, []byte(end)); !whole && !bytes.HasSuffix(head.bytes, []byte(end)) {
			return nil, &Error{Msg: fmt.Sprintf("the lock file is truncated: it does not end with %q", strings.TrimSpace(end)), Hint: restore}
		}
	}
	l := New()
	lines := map[Key]int{}
	for t := range split(rest, head.lines()+1) {
		e, err := t.entry()
		if err != nil {
			return nil, err
		}
		if first, twice := lines[e.Key()]; twice {
			return nil, &Error{Line: t.line, Msg: fmt.Sprintf("%s has two entries, the first in line %d", e.Key(), first),
				Hint: "remove either entry, then run helmsrc lock"}
		}
		lines[e.Key()] = t.line
		l.Put(*e)
	}
	return l, nil
}

const restore = "restore it from version control, or remove it and run helmsrc lock"

// A text is a part of the file, with the number of its first line, from 1.
type text struct {
	line  int
	bytes []byte
}

// cut separates the entries from the header.
func cut(content []byte) (head text, entries []byte) {
	at := len(content)
	if bytes.HasPrefix(content, []byte("- ")) {
		at = 0
	} else if i := bytes.Index(content, []byte("\n- ")); i >= 0 {
		at = i + 1
	}
	return text{1, content[:at]}, content[at:]
}

func (t text) lines() int { return bytes.Count(t.bytes, []byte("\n")) }

// split returns the entries, each of which begins with a dash that is not indented.
func split(entries []byte, line int) iter.Seq[text] {
	return func(yield func(text) bool) {
		for len(entries) > 0 {
			size := len(entries)
			if next := bytes.Index(entries, []byte("\n- ")); next >= 0 {
				size = next + 1
			}
			t := text{line, entries[:size]}
			if !yield(t) {
				return
			}
			entries, line = entries[size:], line+t.lines()
		}
	}
}

// check returns an error unless the header is that of a lock of this version.
func (t text) check() error {
	var root file
	err := t.decode(&root)
	if errors.Is(err, io.EOF) {
		return &Error{Msg: "the lock file is empty", Hint: "remove it, then run helmsrc lock"}
	}
	if err != nil {
		var known struct {
			file `yaml:",inline"`
			More map[string]yaml.Node `yaml:",inline"`
		}
		if t.bounded() == nil && yaml.Unmarshal(t.bytes, &known) == nil && known.foreign() != nil {
			return known.foreign()
		}
		return err
	}
	if err := root.foreign(); err != nil {
		return err
	}
	if len(root.Entries) > 0 {
		return &Error{Msg: "the lock file does not have the layout that helmsrc writes", Hint: restore}
	}
	return nil
}

// entry parses the text and returns its entry. It is an error if the entry was edited.
func (t text) entry() (*Entry, error) {
	var list []fileEntry
	if err := t.decode(&list); err != nil {
		return nil, err
	}
	if len(list) != 1 || t.aliased() {
		return nil, &Error{Line: t.line, Msg: "the lock file does not have the layout that helmsrc writes", Hint: restore}
	}
	e := &list[0].Entry
	if problem := e.problem(); problem != "" {
		return nil, &Error{Line: t.line, Msg: problem, Hint: restore}
	}
	if !t.whole() {
		return nil, &Error{Line: t.line, Msg: fmt.Sprintf("the entry of %s was edited, or merged from two branches", e.Key()),
			Hint: "remove the entry, then run helmsrc lock"}
	}
	return e, nil
}

// aliased reports whether the text repeats a value by an alias.
func (t text) aliased() bool {
	if !bytes.ContainsRune(t.bytes, '&') || !bytes.ContainsRune(t.bytes, '*') {
		return false
	}
	var root yaml.Node
	return yaml.Unmarshal(t.bytes, &root) != nil || hasAlias(&root)
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

// bounded returns an error for a text that takes too long to decode.
func (t text) bounded() error {
	if len(t.bytes) > maxEntry {
		return &Error{Line: t.line, Msg: fmt.Sprintf("the lock file has more than %d bytes in an entry", maxEntry), Hint: restore}
	}
	if len(t.bytes) <= 2048 { // too short for so many keys
		return nil
	}
	var root yaml.Node
	if yaml.Unmarshal(t.bytes, &root) == nil && bound.Keys(&root) != nil {
		return &Error{Line: t.line, Msg: "the lock file has " + bound.ErrKeys.Error(), Hint: restore}
	}
	return nil
}

// decode decodes the only document of the text.
func (t text) decode(into any) error {
	if err := t.bounded(); err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(t.bytes))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); errors.Is(err, io.EOF) {
		return err
	} else if err != nil {
		return broken(err, t.line)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return &Error{Msg: "the lock file has more than one document"}
	}
	return nil
}

// whole reports whether the sum in the last line is that of the lines before.
func (t text) whole() bool {
	last := bytes.LastIndexByte(bytes.TrimSuffix(t.bytes, []byte("\n")), '\n') + 1
	return string(t.bytes[last:]) == fmt.Sprintf(sumLine, sum(t.bytes[:last]))
}

var conflictMarker = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)`)
})

// conflict returns the number of the first line with a conflict marker, from 1, or 0.
func conflict(content []byte) int {
	at := conflictMarker().FindIndex(content)
	if at == nil {
		return 0
	}
	return 1 + bytes.Count(content[:at[0]], []byte("\n"))
}

type file struct {
	APIVersion string      `yaml:"apiVersion"`
	Kind       string      `yaml:"kind"`
	Entries    []fileEntry `yaml:"entries"`
}

// foreign returns an error for a file that is not a lock, or a lock of another version.
func (f *file) foreign() error {
	if f.APIVersion == APIVersion && f.Kind == Kind {
		return nil
	}
	return &Error{Msg: fmt.Sprintf("the lock file has apiVersion %.60q and kind %.60q, and this version of helmsrc reads %s and %s",
		f.APIVersion, f.Kind, APIVersion, Kind), Hint: "a newer version of helmsrc may have written it"}
}

// broken rewrites an error of the YAML library, about a text that begins in line first, in the words of a lock file.
func broken(err error, first int) *Error {
	var types *yaml.TypeError
	msg := err.Error()
	if errors.As(err, &types) {
		msg = types.Errors[0]
	}
	msg = strings.TrimPrefix(msg, "yaml: ")
	msg, _, _ = strings.Cut(msg, " in type ") // a type of Go
	var line int
	if _, scan := fmt.Sscanf(msg, "line %d: ", &line); scan == nil {
		_, msg, _ = strings.Cut(msg, ": ")
		line += first - 1
	}
	msg, _, _ = strings.Cut(msg, " at line ") // the place of a duplicate key
	return &Error{Line: line, Msg: fmt.Sprintf("the lock file cannot be read: %.200s", msg), Hint: restore}
}

var (
	objectName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]+/[^/\s]+/[^/\s]+$`) })
	digests    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
	})

	// revisions matches the revisions that identify bytes: a commit, or the digest of a manifest or of a bucket's content.
	revisions = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(^|@)(sha1:[0-9a-f]{40}|sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
	})
)

// unpinned returns an error message for a field that should identify the bytes and is missing or does not, or "".
func (e *Entry) unpinned() string {
	for _, d := range e.Dependencies {
		if d.Digest == "" {
			return fmt.Sprintf("its dependency %.100q has no digest", d.Name)
		}
	}
	kind, _, _ := strings.Cut(e.Object, "/")
	switch {
	case e.SourceKind == "HelmRepository" && !strings.HasPrefix(e.SourceURL, "oci://"):
		if e.Digest == "" {
			return "it has no digest"
		}
	case e.SourceKind == "HelmRepository":
		if e.ManifestDigest == "" || e.LayerDigest == "" {
			return "it has no manifestDigest or no layerDigest"
		}
	case !revisions().MatchString(e.Revision):
		return "its revision is neither a commit nor a digest"
	case e.SourceKind == "OCIRepository" && kind == e.SourceKind:
		if e.ManifestDigest == "" || !strings.HasSuffix(e.Revision, e.ManifestDigest) {
			return "its revision does not match its manifestDigest"
		}
	}
	return ""
}

// problem returns the reason why an entry is invalid, or "".
func (e *Entry) problem() string {
	if !objectName().MatchString(e.Object) {
		return fmt.Sprintf("%.100q is not KIND/NAMESPACE/NAME", e.Object)
	}
	check := []Difference{{Field: "digest", Now: e.Digest}, {Field: "manifestDigest", Now: e.ManifestDigest},
		{Field: "layerDigest", Now: e.LayerDigest}, {Field: "package", Now: e.Package}}
	for _, f := range e.ValuesFiles {
		check = append(check, Difference{Field: "valuesFiles", Now: f.Digest})
	}
	urls := []Difference{{Field: "sourceURL", Now: e.SourceURL}, {Field: "url", Now: e.URL}}
	for _, d := range e.Dependencies {
		check = append(check, Difference{Field: "dependencies", Now: d.Digest}, Difference{Field: "dependencies", Now: d.ManifestDigest})
		urls = append(urls, Difference{Field: "dependencies", Now: d.URL}, Difference{Field: "dependencies", Now: d.Repository})
	}
	for _, d := range check {
		if d.Now != "" && !digests().MatchString(d.Now) {
			return fmt.Sprintf("%s of %s is not a digest in sha256, sha384 or sha512", d.Field, e.Key())
		}
	}
	if missing := e.unpinned(); missing != "" {
		return fmt.Sprintf("the entry of %s pins nothing: %s", e.Key(), missing)
	}
	for _, d := range urls {
		u, err := url.Parse(d.Now)
		if err != nil {
			return fmt.Sprintf("%s of %s is not a URL", d.Field, e.Key())
		}
		if _, password := u.User.Password(); password {
			return fmt.Sprintf("%s of %s contains a password", d.Field, e.Key())
		}
	}
	return ""
}
