package publish

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/rewrite"
)

// mapFiles replaces the names of files in a report by paths from the root of the
// repository.
func mapFiles(root string, run *report.Run) {
	places := map[string]string{}
	mapPos := func(p *manifest.Pos) {
		if _, ok := places[p.File]; !ok {
			places[p.File] = fileInRepository(root, p.File)
		}
		p.File = places[p.File]
	}
	run.Findings, run.Silenced = slices.Clone(run.Findings), slices.Clone(run.Silenced)
	for _, list := range [][]finding.Finding{run.Findings, run.Silenced} {
		for i := range list {
			f := &list[i]
			f.Related = slices.Clone(f.Related)
			mapPos(&f.Pos)
			if f.Repair != nil {
				repair := *f.Repair
				mapPos(&repair.Pos)
				f.Repair = &repair
			}
			for j := range f.Related {
				mapPos(&f.Related[j])
			}
			f.Blocks = slices.Clone(f.Blocks)
			for j := range f.Blocks {
				mapPos(&f.Blocks[j].Pos)
			}
		}
	}
	for i := range run.Objects {
		mapPos(&run.Objects[i].Pos)
		mapPos(&run.Objects[i].BlockedBy.Pos)
	}
}

// repositoryRoot returns the directory that the paths of reports start from: the checkout
// of a CI system, or the repository of the working directory, or the working directory.
func repositoryRoot(getenv func(string) string) string {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return ""
	}
	for _, name := range []string{"GITHUB_WORKSPACE", "CI_PROJECT_DIR"} {
		if root, err := filepath.EvalSymlinks(getenv(name)); err == nil && isBelow(root, dir) && filepath.IsAbs(root) {
			return root
		}
	}
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			return up
		}
		if up == filepath.Dir(up) {
			return dir
		}
	}
}

func isBelow(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// fileInRepository returns the path of a file from the root, with forward slashes, or its
// absolute path if it is outside of the root.
func fileInRepository(root, file string) string {
	if file == "" || file == manifest.StdinName {
		return file
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return filepath.ToSlash(file)
	}
	// The links of the directory are resolved, but not that of the file: the finding is about
	// the link, not about its target.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(absolute)); err == nil {
		absolute = filepath.Join(dir, filepath.Base(absolute))
	}
	if rel, err := filepath.Rel(root, absolute); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(absolute)
}

// writeWhole writes a file completely or not at all. A pipe or a device is written to
// directly.
func writeWhole(ctx context.Context, path string, content []byte) error {
	if file.Outside(path) {
		return file.ErrOutside
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return errors.New("is a directory")
	case err == nil && !info.Mode().IsRegular():
		return writeInBackground(ctx, path, content)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return rewrite.Write(path, content)
}

// readerPatience is the time that an interrupted run waits for the reader of its report.
const readerPatience = time.Second

// writeInBackground writes to a pipe or a device, which may have no reader, until the context ends.
func writeInBackground(ctx context.Context, path string, content []byte) error {
	done := make(chan error, 1)
	go func() { done <- os.WriteFile(path, content, 0o666) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(readerPatience):
		return context.Cause(ctx)
	}
}
