package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const header = "# " + FileName + " pins what the manifests resolve to. \"helmsrc lock\" writes it; commit it, and do not edit it.\n"

// An Error is a lock file that cannot be used. It never quotes more of the file than names of fields and objects.
type Error struct {
	Line int // from 1, or 0 where no single line is wrong
	Msg  string
	Hint string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Msg
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
}

// A fileEntry is an entry as the file has it.
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
		b.WriteString("entries: []\n")
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
	return b.Bytes(), nil
}

const sumLine = "  sum: %s\n"

// sum returns what the last line of an entry says of the lines before it. Half a SHA-256 is enough against accidents;
// a change on purpose can come with a new one.
func sum(lines []byte) string {
	h := sha256.Sum256(lines)
	return hex.EncodeToString(h[:16])
}

// Read returns what a lock file holds. Errors are of type *Error.
func Read(content []byte) (*Lock, error) {
	if len(content) > MaxBytes {
		return nil, &Error{Msg: fmt.Sprintf("the lock file is larger than %d MiB", MaxBytes>>20)}
	}
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")) // Git for Windows may have made them
	if line := conflict(content); line != 0 {
		return nil, &Error{Line: line, Msg: "the lock file has a conflict marker",
			Hint: "take either side, then run helmsrc lock: it keeps what fits and pins the rest"}
	}
	f, err := parse(content)
	if err != nil {
		return nil, err
	}
	texts := split(content)
	if len(texts) != len(f.Entries) {
		return nil, &Error{Msg: "the lock file is not laid out as helmsrc writes it", Hint: restore}
	}
	l := New()
	lines := map[Key]int{}
	for i, e := range f.Entries {
		line := texts[i].line
		if problem := e.problem(); problem != "" {
			return nil, &Error{Line: line, Msg: problem, Hint: restore}
		}
		if !texts[i].whole() {
			return nil, &Error{Line: line, Msg: fmt.Sprintf("the entry of %s was edited, or merged from two branches", e.Key()),
				Hint: "remove the entry, then run helmsrc lock"}
		}
		if first, twice := lines[e.Key()]; twice {
			return nil, &Error{Line: line, Msg: fmt.Sprintf("%s has two entries, the first in line %d", e.Key(), first),
				Hint: "remove either entry, then run helmsrc lock"}
		}
		lines[e.Key()] = line
		l.Put(e.Entry)
	}
	return l, nil
}

const restore = "restore it from version control, or remove it and run helmsrc lock"

// A text is an entry as it stands in the file, from its line, which counts from 1.
type text struct {
	line  int
	bytes []byte
}

// split returns the entries of a file, which begin with a dash that is not indented.
func split(content []byte) []text {
	var all []text
	line := 0
	for part := range bytes.Lines(content) {
		line++
		switch {
		case bytes.HasPrefix(part, []byte("- ")):
			all = append(all, text{line: line, bytes: slices.Clip(part)})
		case len(all) > 0:
			last := &all[len(all)-1]
			last.bytes = append(last.bytes, part...)
		}
	}
	return all
}

// whole reports whether the sum in the last line is that of the lines before.
func (t text) whole() bool {
	last := bytes.LastIndexByte(bytes.TrimSuffix(t.bytes, []byte("\n")), '\n') + 1
	return string(t.bytes[last:]) == fmt.Sprintf(sumLine, sum(t.bytes[:last]))
}

var conflictMarker = regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)`)

// conflict returns the first line that a merge could not decide, from 1, or 0.
func conflict(content []byte) int {
	at := conflictMarker.FindIndex(content)
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

// foreign is what is wrong with a file that is no lock, or that of another version.
func (f *file) foreign() error {
	if f.APIVersion == APIVersion && f.Kind == Kind {
		return nil
	}
	return &Error{Msg: fmt.Sprintf("the lock file has apiVersion %.60q and kind %.60q, and this version of helmsrc reads %s and %s",
		f.APIVersion, f.Kind, APIVersion, Kind), Hint: "a newer version of helmsrc may have written it"}
}

func parse(content []byte) (*file, error) {
	var root file
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, &Error{Msg: "the lock file is empty", Hint: "remove it, then run helmsrc lock"}
	case err != nil:
		if wrong := root.foreign(); wrong != nil && yaml.Unmarshal(content, &root) == nil {
			return nil, wrong
		}
		return nil, broken(err)
	}
	if wrong := root.foreign(); wrong != nil {
		return nil, wrong
	}
	var more any
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Error{Msg: "the lock file has more than one document"}
	}
	return &root, nil
}

// broken puts the YAML library's error into the words of a lock file.
func broken(err error) *Error {
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
	}
	return &Error{Line: line, Msg: fmt.Sprintf("the lock file cannot be read: %.200s", msg), Hint: restore}
}

var (
	objectName = regexp.MustCompile(`^[A-Za-z]+/[^/\s]+/[^/\s]+$`)
	digests    = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
)

// problem returns what is wrong with an entry, or nothing.
func (e *Entry) problem() string {
	if !objectName.MatchString(e.Object) {
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
		if d.Now != "" && !digests.MatchString(d.Now) {
			return fmt.Sprintf("%s of %s is no digest in sha256, sha384 or sha512", d.Field, e.Key())
		}
	}
	for _, d := range urls {
		u, err := url.Parse(d.Now)
		if err != nil {
			return fmt.Sprintf("%s of %s is no URL", d.Field, e.Key())
		}
		if _, password := u.User.Password(); password {
			return fmt.Sprintf("%s of %s holds a password", d.Field, e.Key())
		}
	}
	return ""
}
