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

// arguments are what a command line names without a flag.
type arguments struct {
	dirs      []string // read like those of -f
	files     []string // as pre-commit passes them: they need not be manifests
	selectors []load.Selector
}

// splitArguments takes the arguments that are manifest files or directories for -f
// values, and the others as selectors. A directory that could be the name of an object is
// one where alone says that nothing else is read.
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

// splitNames takes values of -f apart at commas, as kubectl does. A file whose name has
// one is named by itself.
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

// calledManifest reports whether an argument looks like a file.
func calledManifest(arg string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(arg))
}

// meant is a hint about an argument that is no object: it may be meant as a file.
func meant(text string) string {
	switch {
	case file.Exists(text):
		return "files and directories are named with -f: -f " + text
	case calledManifest(text):
		return "there is no file " + text + " either"
	}
	return ""
}

// parseSource reads a --source value, KIND/[NAMESPACE/]NAME=PATH.
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
		return load.Selector{}, "", exit.Usagef("--source %q: a %s is no source", text, s.Kind)
	}
	return s, path, checkSourceDir(s.Kind, text, path)
}

// checkSourceDir refuses what cannot stand in for a source of this kind: it is a slip on the command line, and no fault
// of the source.
func checkSourceDir(kind, text, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &exit.UsageError{Err: fmt.Errorf("--source %s: no such directory: %s", text, path), Advice: "name a directory that exists: " + sourceDirHint(kind)}
	case err != nil:
		return &exit.UsageError{Err: fmt.Errorf("--source %s: %w", text, err)}
	case !info.IsDir() && kind != "OCIRepository":
		return &exit.UsageError{Err: fmt.Errorf("--source %s: %s is not a directory", text, path), Advice: "name a directory: " + sourceDirHint(kind)}
	case kind == "HelmRepository" && !holdsCharts(path):
		return noChartsIn(text, path)
	}
	return nil
}

func sourceDirHint(kind string) string {
	if kind == "HelmRepository" {
		return "one that holds an index.yaml or chart archives"
	}
	return "the working tree, or what stands in for it"
}

// holdsCharts reports whether a directory can be a Helm repository. One that cannot be read is left to those who read
// it.
func holdsCharts(dir string) bool {
	entries, err := file.ReadDir(dir)
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == "index.yaml" || filepath.Ext(e.Name()) == ".tgz"
	})
}

// noChartsIn names the directory below that has charts, if one of those directly below has.
func noChartsIn(text, dir string) error {
	e := &exit.UsageError{
		Err:    fmt.Errorf("--source %s: the directory holds neither an index.yaml nor a chart archive (.tgz)", text),
		Advice: "package a chart into it with 'helm package', or name another directory",
	}
	below, _ := file.ReadDir(dir) // unreadable: there is nothing to offer
	for _, entry := range below {
		if at := filepath.Join(dir, entry.Name()); entry.IsDir() && holdsCharts(at) {
			e.Advice = at + " does: name that directory"
			break
		}
	}
	return e
}
