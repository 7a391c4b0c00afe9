package load

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
)

// Selector is one [KIND/][NAMESPACE/]NAME argument. An empty field matches all.
type Selector struct {
	Text, Kind, Namespace, Name string
	// anyGroup is true for a kind without its API group.
	anyGroup bool
}

// setKind sets the kind to the first part of an argument, if that is a kind.
func (s *Selector) setKind(text string) bool {
	kind, ok := KindNamed(text)
	if ok {
		s.Kind, s.anyGroup = kind, !strings.Contains(text, ".")
	}
	return ok
}

// Fits reports whether the selector can match objects of a kind.
func (s Selector) Fits(kind string) bool {
	return s.Kind == "" || s.Kind == kind || s.anyGroup && s.Kind == manifest.BareKind(kind)
}

// Ambiguous returns a usage error if a kind without API group matches objects of several groups.
func (s Selector) Ambiguous(objects []*manifest.Object) error {
	var called []string
	for _, obj := range objects {
		name := strings.ToLower(manifest.BareKind(obj.Kind)) + "." + obj.Group()
		if s.anyGroup && s.Matches(obj) && !slices.Contains(called, name) {
			called = append(called, name)
		}
	}
	if len(called) < 2 {
		return nil
	}
	slices.Sort(called)
	_, rest, _ := strings.Cut(s.Text, "/")
	return &exit.UsageError{
		Err:    fmt.Errorf("%s is of several API groups in the input", s.Text),
		Advice: "name the API group: " + strings.Join(called, "/"+rest+" or ") + "/" + rest,
	}
}

// ParseSelector parses an argument. The first of two segments is a kind if it
// names one (or its plural or short name, in any case, with or without the API group),
// else a namespace.
func ParseSelector(text string) (Selector, error) {
	parts := strings.Split(text, "/")
	s := Selector{Text: text, Name: parts[len(parts)-1]}
	switch len(parts) {
	case 1:
	case 2:
		if !s.setKind(parts[0]) {
			s.Namespace = parts[0]
		}
	case 3:
		if !s.setKind(parts[0]) {
			return s, exit.Usagef("%q: %q is not a kind that helmsrc supports", text, parts[0])
		}
		s.Namespace = parts[1]
	default:
		return s, exit.Usagef("%q is not of the form [KIND/][NAMESPACE/]NAME", text)
	}
	for _, p := range parts {
		if p == "" {
			return s, exit.Usagef("%q is not of the form [KIND/][NAMESPACE/]NAME", text)
		}
	}
	return s, nil
}

// KindNamed returns a kind of a run, or an image kind whose policies are followed.
func KindNamed(name string) (string, bool) {
	if kind, ok := reconcile.Kinds().Named(name); ok {
		return kind, true
	}
	name = strings.TrimSuffix(strings.ToLower(name), "."+manifest.ImageGroup)
	for kind, plural := range map[string]string{imagev1.ImagePolicyKind: "imagepolicies", imagev1.ImageRepositoryKind: "imagerepositories"} {
		if name == plural || name == strings.ToLower(kind) {
			return kind, true
		}
	}
	return "", false
}

func (s Selector) Matches(obj *manifest.Object) bool {
	return s.Fits(obj.Kind) &&
		(s.Namespace == "" || s.Namespace == obj.Namespace) &&
		s.Name == obj.Name
}

// A Source is a directory that replaces a source.
type Source struct {
	Selector
	Dir string
}

// Rendered converts the source for the renderer.
func (s Source) Rendered() render.Source {
	return render.Source{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Dir: s.Dir}
}

// CalledDirectory reports whether an argument cannot be the name of an object.
func CalledDirectory(arg string) bool {
	return strings.HasSuffix(arg, "/") || arg == "." || arg == ".." ||
		strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") || filepath.IsAbs(arg)
}
