package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
)

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
