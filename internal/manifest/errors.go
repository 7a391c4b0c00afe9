package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// FileError reports a file or directory that cannot be read at all.
type FileError struct {
	Name string
	Err  error
}

func (e *FileError) Error() string { return e.Name + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// ParseError reports a file, or a document or object of it, that cannot be read as manifests.
type ParseError struct {
	Pos  Pos
	Msg  string
	hint string
	line Excerpt
	code finding.Code // if it is not finding.Syntax

	syntax     bool // the file is neither YAML nor JSON
	ofDocument bool // the other documents of the file can be read
}

// Excerpt returns the line that cannot be read.
func (e *ParseError) Excerpt() Excerpt {
	return Excerpt{e.Pos, e.line.Before, e.line.Marked, e.line.After}
}

func (e *ParseError) Error() string { return e.Pos.String() + ": " + e.Msg }

// Unplaced returns the message without the file: a status does not name files.
func (e *ParseError) Unplaced() string { return e.Msg }

// Syntax reports whether the text is not YAML, as opposed to a file without objects.
func (e *ParseError) Syntax() bool { return e.syntax }

// Hint suggests a fix if the mistake is a known one.
func (e *ParseError) Hint() string { return e.hint }

// Finding returns the code of a fault of a single object, such as an unknown kind, or "" if the file cannot be read.
func (e *ParseError) Finding() finding.Code { return e.code }

// DuplicateError reports an object that is defined more than once. No definition is used: the program cannot know
// which one was meant.
type DuplicateError struct {
	Kind, Namespace, Name string
	Places                []Pos

	built []string // the Kustomization that built each definition, "" if it is as written
	last  *Object
}

// Hint suggests a solution if kustomizations are the reason, or the hint of a partial object.
func (e *DuplicateError) Hint() string {
	if len(slices.Compact(slices.Clone(e.built))) < 2 {
		return e.last.PartHint()
	}
	return finding.OneDefinition
}

// Excerpt returns the line with the name of the last definition.
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

// Finding returns the code of a reference to such an object.
func (e *DuplicateError) Finding() finding.Code {
	if e.Kind == "Secret" {
		return finding.InvalidSecret
	}
	return finding.UnusableSource
}

// Unplaced returns the message without the files of the definitions.
func (e *DuplicateError) Unplaced() string {
	return fmt.Sprintf("%s %s/%s is defined %d times", e.Kind, e.Namespace, e.Name, len(e.Places))
}

// NotFoundError reports a reference to an object that is neither in the input nor beside it. Its text is the API server's.
type NotFoundError struct {
	Group, Kind, Namespace, Name string
	// InCluster is true if the cluster has the object anyway: it is encrypted, or a controller creates it.
	InCluster bool
	// Field is the field that could name another namespace, "" if the reference cannot leave its own.
	Field string
	// Unread is true if the object may be in a file of the input that cannot be read, or in a namespace that is not fully known.
	Unread bool

	known   string // a known fact about the object, for the hint
	suggest func() (text, namespace string)
}

func (e *NotFoundError) Error() string {
	resource := plural(e.Kind)
	if e.Group != "" {
		resource += "." + e.Group
	}
	return fmt.Sprintf("%s %q not found", resource, e.Name)
}

// Finding returns the code of the reference.
func (e *NotFoundError) Finding() finding.Code {
	switch e.Kind {
	case "Secret", "ServiceAccount":
		return finding.MissingSecret
	}
	return finding.MissingSource
}

// Elsewhere reports where a similar object was seen, or "" if the object may exist in the cluster alone.
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

// Hint reports where a similar object was seen, or else which file to add.
func (e *NotFoundError) Hint() string {
	return cmp.Or(e.Elsewhere(), fmt.Sprintf(finding.AddFile, e.Kind+" "+e.Namespace+"/"+e.Name))
}

// SecretError reports a Secret or ConfigMap that the API server would refuse. It names keys, never values.
type SecretError struct {
	Kind, Namespace, Name string
	Pos                   Pos
	Msg                   string
	hint                  string
}

func (e *SecretError) Error() string { return e.Pos.String() + ": " + e.Unplaced() }

// Unplaced returns the message without the file.
func (e *SecretError) Unplaced() string {
	return fmt.Sprintf("%s %s/%s: %s", e.Kind, e.Namespace, e.Name, e.Msg)
}

// Finding returns [finding.InvalidSecret].
func (*SecretError) Finding() finding.Code { return finding.InvalidSecret }

// Hint suggests a fix if the mistake is a known one.
func (e *SecretError) Hint() string { return e.hint }

// plural returns the resource name of a kind, as the CRDs declare it.
func plural(kind string) string {
	lower := strings.ToLower(kind)
	if stem, ok := strings.CutSuffix(lower, "y"); ok {
		return stem + "ies"
	}
	return lower + "s"
}
