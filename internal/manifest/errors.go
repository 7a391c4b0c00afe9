package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// FileError is a file or directory that cannot be read at all.
type FileError struct {
	Name string
	Err  error
}

func (e *FileError) Error() string { return e.Name + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// ParseError is a file that cannot be read as manifests. Nothing of that file is used.
type ParseError struct {
	Pos  Pos
	Msg  string
	hint string
	line Excerpt
	code finding.Code // of one that is not finding.Syntax

	syntax     bool // it is not YAML, or JSON
	ofDocument bool // the other documents of the file can be read
}

// Excerpt is the line that cannot be read.
func (e *ParseError) Excerpt() Excerpt {
	return Excerpt{e.Pos, e.line.Before, e.line.Marked, e.line.After}
}

func (e *ParseError) Error() string { return e.Pos.String() + ": " + e.Msg }

// Unplaced is the error without the file that it is in: a status says nothing of files.
func (e *ParseError) Unplaced() string { return e.Msg }

// Syntax distinguishes a file that is not YAML from one without objects.
func (e *ParseError) Syntax() bool { return e.syntax }

// Hint offers a way out where the mistake is a known one.
func (e *ParseError) Hint() string { return e.hint }

// Finding is what is wrong if it can be read: the kind of an object, which the rest of the file has nothing to do with; else "".
func (e *ParseError) Finding() finding.Code { return e.code }

// DuplicateError is an object that is there more than once. None of them is used: which one was meant is not for a
// program to guess.
type DuplicateError struct {
	Kind, Namespace, Name string
	Places                []Pos

	built []string // what built each of them, "" for one that is as it was written
	last  *Object
}

// Hint offers a way out where kustomizations are the reason.
func (e *DuplicateError) Hint() string {
	if len(slices.Compact(slices.Clone(e.built))) < 2 {
		return e.last.PartHint()
	}
	return "leave it out of one of them, or, if they belong to different clusters, name the directory of one with -f"
}

// Excerpt is the line with the name of the last one.
func (e *DuplicateError) Excerpt() Excerpt { return e.last.Excerpt("metadata", "name") }

func (e *DuplicateError) Error() string {
	places := make([]string, len(e.Places))
	for i, p := range e.Places {
		places[i] = p.String()
		if i < len(e.built) && e.built[i] != "" {
			places[i] += " in " + e.built[i]
		}
	}
	last := len(places) - 1
	return fmt.Sprintf("%s %s/%s is defined %d times: %s and %s", e.Kind, e.Namespace, e.Name, len(places),
		strings.Join(places[:last], ", "), places[last])
}

// Finding is what is wrong with a reference to them.
func (e *DuplicateError) Finding() finding.Code {
	if e.Kind == "Secret" {
		return finding.InvalidSecret
	}
	return finding.UnusableSource
}

// Unplaced is the error without the files that the object is in.
func (e *DuplicateError) Unplaced() string {
	return fmt.Sprintf("%s %s/%s is defined %d times", e.Kind, e.Namespace, e.Name, len(e.Places))
}

// NotFoundError is a reference to an object that is neither in the input nor beside it. Its text is the API server's.
type NotFoundError struct {
	Group, Kind, Namespace, Name string
	// InCluster reports that the cluster will have it all the same: it is encrypted, or something makes it there.
	InCluster bool
	// Field is where the reference could name another namespace, "" if it cannot leave its own.
	Field string
	// Unread is true where a file of the input that names the object cannot be read: the object may be in it.
	Unread bool

	known   string // what is known of it
	suggest func() (text, namespace string)
}

func (e *NotFoundError) Error() string {
	resource := plural(e.Kind)
	if e.Group != "" {
		resource += "." + e.Group
	}
	return fmt.Sprintf("%s %q not found", resource, e.Name)
}

// Finding is what is wrong with the reference.
func (e *NotFoundError) Finding() finding.Code {
	switch e.Kind {
	case "Secret", "ServiceAccount":
		return finding.MissingSecret
	}
	return finding.MissingSource
}

// Elsewhere says where something similar is, or "": then it may be in the cluster alone.
func (e *NotFoundError) Elsewhere() string {
	if e.suggest == nil {
		return e.known
	}
	switch text, namespace := e.suggest(); {
	case namespace == "":
		return text
	case e.Field != "":
		return "there is one in namespace " + namespace + ": name it in " + e.Field
	default:
		return "there is one in namespace " + namespace + ", but a reference cannot leave namespace " + e.Namespace
	}
}

// Hint says where something like it was seen, or what to do.
func (e *NotFoundError) Hint() string {
	return cmp.Or(e.Elsewhere(), "add the file that holds "+e.Kind+" "+e.Namespace+"/"+e.Name+" with -f")
}

// SecretError is a Secret or ConfigMap that the API server would refuse. It names keys, never values.
type SecretError struct {
	Kind, Namespace, Name string
	Pos                   Pos
	Msg                   string
	hint                  string
}

func (e *SecretError) Error() string { return e.Pos.String() + ": " + e.Unplaced() }

// Unplaced is the error without the file that it is in.
func (e *SecretError) Unplaced() string {
	return fmt.Sprintf("%s %s/%s: %s", e.Kind, e.Namespace, e.Name, e.Msg)
}

// Finding is what is wrong.
func (*SecretError) Finding() finding.Code { return finding.InvalidSecret }

// Hint offers a way out where the mistake is a known one.
func (e *SecretError) Hint() string { return e.hint }

// plural is the resource name of a kind, as the CRDs declare it.
func plural(kind string) string {
	lower := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(lower, "y"); ok {
		return stem + "ies"
	}
	return lower + "s"
}
