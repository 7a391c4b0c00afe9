package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// selector is one [KIND/][NAMESPACE/]NAME argument. An empty field matches all.
type selector struct {
	text, kind, namespace, name string
	// anyGroup is a kind without its API group: that of whatever is called so.
	anyGroup bool
}

// setKind takes the first part of an argument for a kind, if it is one.
func (s *selector) setKind(text string) bool {
	kind, ok := kindNamed(text)
	if ok {
		s.kind, s.anyGroup = kind, !strings.Contains(text, ".")
	}
	return ok
}

// fits reports whether objects of a kind may be meant.
func (s selector) fits(kind string) bool {
	return s.kind == "" || s.kind == kind || s.anyGroup && s.kind == manifest.BareKind(kind)
}

// ambiguous is the usage error for a kind of several API groups, where the objects of more than one would be selected.
func (s selector) ambiguous(objects []*manifest.Object) error {
	var called []string
	for _, obj := range objects {
		name := strings.ToLower(manifest.BareKind(obj.Kind)) + "." + obj.Group()
		if s.anyGroup && s.matches(obj) && !slices.Contains(called, name) {
			called = append(called, name)
		}
	}
	if len(called) < 2 {
		return nil
	}
	slices.Sort(called)
	_, rest, _ := strings.Cut(s.text, "/")
	return &usageError{
		err:  fmt.Errorf("%s is of several API groups in the input", s.text),
		hint: "name the one that is meant: " + strings.Join(called, "/"+rest+" or ") + "/" + rest,
	}
}

// parseSelector reads an argument. The first of two segments is a kind if it is
// one (or its plural or short name, in any case, with or without the API group),
// else a namespace.
func parseSelector(text string) (selector, error) {
	parts := strings.Split(text, "/")
	s := selector{text: text, name: parts[len(parts)-1]}
	switch len(parts) {
	case 1:
	case 2:
		if !s.setKind(parts[0]) {
			s.namespace = parts[0]
		}
	case 3:
		if !s.setKind(parts[0]) {
			return s, usagef("%q: %q is no kind that helmsrc knows", text, parts[0])
		}
		s.namespace = parts[1]
	default:
		return s, usagef("%q is not of the form [KIND/][NAMESPACE/]NAME", text)
	}
	for _, p := range parts {
		if p == "" {
			return s, usagef("%q is not of the form [KIND/][NAMESPACE/]NAME", text)
		}
	}
	return s, nil
}

// kindNamed finds a kind of a run, or one of those whose policies are followed.
func kindNamed(name string) (string, bool) {
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

func (s selector) matches(obj *manifest.Object) bool {
	return s.fits(obj.Kind) &&
		(s.namespace == "" || s.namespace == obj.Namespace) &&
		s.name == obj.Name
}

// arguments are what a command line names without a flag.
type arguments struct {
	dirs      []string // read like those of -f
	files     []string // as pre-commit passes them: they need not be manifests
	selectors []selector
}

// splitArguments takes the arguments that are manifest files or directories for -f
// values, and the others as selectors. A directory that could be the name of an object is
// one where alone says that nothing else is read.
func splitArguments(args []string, alone bool) (arguments, error) {
	var a arguments
	for _, arg := range args {
		switch {
		case calledManifest(arg) && exists(arg):
			a.files = append(a.files, arg)
			continue
		case isDir(arg) && (alone || calledDirectory(arg)):
			a.dirs = append(a.dirs, arg)
			continue
		case calledDirectory(arg) && !exists(arg):
			return a, usagef("%s: no such directory", arg)
		}
		s, err := parseSelector(arg)
		if err != nil {
			return a, &usageError{err: err, hint: s.meant()}
		}
		a.selectors = append(a.selectors, s)
	}
	return a, nil
}

// calledDirectory reports whether an argument cannot be the name of an object.
func calledDirectory(arg string) bool {
	return strings.HasSuffix(arg, "/") || arg == "." || arg == ".." ||
		strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") || filepath.IsAbs(arg)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// splitNames takes values of -f apart at commas, as kubectl does. A file whose name has
// one is named by itself.
func splitNames(values []string) []string {
	var names []string
	for _, value := range values {
		if !strings.Contains(value, ",") || exists(value) {
			names = append(names, value)
			continue
		}
		names = append(names, strings.Split(value, ",")...)
	}
	return names
}

// calledManifest reports whether an argument looks like a file.
func calledManifest(arg string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// meant is a hint about an argument that is no object: it may be meant as a file.
func (s selector) meant() string {
	switch {
	case exists(s.text):
		return "files and directories are named with -f: -f " + s.text
	case calledManifest(s.text):
		return "there is no file " + s.text + " either"
	}
	return ""
}

// parseSource reads a --source value, KIND/[NAMESPACE/]NAME=PATH.
func parseSource(text string) (selector, string, error) {
	ref, path, found := strings.Cut(text, "=")
	if !found || path == "" {
		return selector{}, "", usagef("--source %q is not of the form KIND/[NAMESPACE/]NAME=PATH", text)
	}
	s, err := parseSelector(ref)
	if err != nil {
		return selector{}, "", fmt.Errorf("--source: %w", err)
	}
	switch {
	case s.kind == "":
		return selector{}, "", usagef("--source %q does not begin with a kind, such as HelmRepository/", text)
	case !reconcile.Kinds().IsSource(s.kind):
		return selector{}, "", usagef("--source %q: a %s is no source", text, s.kind)
	}
	return s, path, checkSourceDir(s.kind, text, path)
}
