package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// arguments are the arguments of a command without a flag.
type arguments struct {
	dirs      []string // read like the values of -f
	files     []string // from pre-commit; they need not be manifests
	selectors []load.Selector
}

// splitArguments divides arguments into manifest files, directories and selectors. A word that may be a directory or the name
// of an object is a directory if alone is set, which means that no other files are read.
func splitArguments(args []string, alone bool) (arguments, error) {
	var a arguments
	for _, arg := range args {
		switch {
		case calledManifest(arg) && file.Exists(arg):
			a.files = append(a.files, arg)
			continue
		case file.IsDir(arg) && (alone || load.CalledDirectory(arg)):
			a.dirs = append(a.dirs, arg)
			continue
		case load.CalledDirectory(arg) && !file.Exists(arg):
			return a, exit.Usagef("%s: no such directory", arg)
		}
		s, err := load.ParseSelector(arg)
		if err != nil {
			return a, &exit.UsageError{Err: err, Advice: meant(s.Text)}
		}
		a.selectors = append(a.selectors, s)
	}
	return a, nil
}

// namesFiles reports whether files or directories are among the arguments.
func namesFiles(args []string) bool {
	given, err := splitArguments(args, false)
	return err == nil && len(given.files)+len(given.dirs) > 0
}

// splitNames splits values of -f at commas, as kubectl does, except for the name of an existing file that contains a comma.
func splitNames(values []string) []string {
	var names []string
	for _, value := range values {
		if !strings.Contains(value, ",") || file.Exists(value) {
			names = append(names, value)
			continue
		}
		names = append(names, strings.Split(value, ",")...)
	}
	return names
}

// calledManifest reports whether an argument has the extension of a manifest file.
func calledManifest(arg string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}

// meant returns advice about an argument that is not an object, but may be a file.
func meant(text string) string {
	switch {
	case file.Exists(text):
		return "files and directories are named with -f: -f " + text
	case calledManifest(text):
		return "there is no file " + text + " either"
	}
	return ""
}

// parseSource parses a --source value, KIND/[NAMESPACE/]NAME=PATH.
func parseSource(text string) (load.Selector, string, error) {
	ref, path, found := strings.Cut(text, "=")
	if !found || path == "" {
		return load.Selector{}, "", exit.Usagef("--source %q is not of the form KIND/[NAMESPACE/]NAME=PATH", text)
	}
	s, err := load.ParseSelector(ref)
	if err != nil {
		return load.Selector{}, "", fmt.Errorf("--source: %w", err)
	}
	switch {
	case s.Kind == "":
		return load.Selector{}, "", exit.Usagef("--source %q does not begin with a kind, such as HelmRepository/", text)
	case !reconcile.Kinds().IsSource(s.Kind):
		return load.Selector{}, "", exit.Usagef("--source %q: a %s is not a source", text, s.Kind)
	}
	return s, path, checkSourceDir(s.Kind, text, path)
}

// checkSourceDir returns an error if a path cannot replace a source of this kind: a mistake on the command line is no fault of
// the source.
func checkSourceDir(kind, text, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &exit.UsageError{Err: fmt.Errorf("--source %s: no such directory: %s", text, path), Advice: "name an existing directory" + sourceDirHint(kind)}
	case err != nil:
		return &exit.UsageError{Err: fmt.Errorf("--source %s: %w", text, err)}
	case !info.IsDir() && kind != "OCIRepository":
		return &exit.UsageError{Err: fmt.Errorf("--source %s: %s is not a directory", text, path), Advice: "name a directory" + sourceDirHint(kind)}
	case kind == "HelmRepository" && !holdsCharts(path):
		return noChartsIn(text, path)
	}
	return nil
}

func sourceDirHint(kind string) string {
	if kind == "HelmRepository" {
		return " with an index.yaml or chart archives"
	}
	return ": a working tree, or a copy of the source"
}

// holdsCharts reports whether a directory can be a Helm repository. It is true for an unreadable directory, whose reader
// reports the error.
func holdsCharts(dir string) bool {
	entries, err := file.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "index.yaml" || filepath.Ext(e.Name()) == ".tgz"
	})
}

// noChartsIn returns the error of a directory without charts. It names a directory directly below that has charts.
func noChartsIn(text, dir string) error {
	e := &exit.UsageError{
		Err:    fmt.Errorf("--source %s: the directory contains neither an index.yaml nor a chart archive (.tgz)", text),
		Advice: "package a chart into it with 'helm package', or name another directory",
	}
	below, _ := file.ReadDir(dir) // unreadable: no directory to offer
	for _, entry := range below {
		if at := filepath.Join(dir, entry.Name()); entry.IsDir() && holdsCharts(at) {
			e.Advice = at + " does: name that directory"
			break
		}
	}
	return e
}
