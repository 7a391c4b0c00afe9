package manifest

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
)

// maxSurroundings is the limit of manifests that are read in the lookup directories. It stops a walk through a home
// directory that was named by mistake.
const maxSurroundings = 50_000

// lookupDirs adds the lookup directories. A missing directory is an error.
func (l *loader) lookupDirs(dirs []string) {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		switch {
		case err != nil:
			l.fail(err)
		case !info.IsDir():
			l.fail(fmt.Errorf("%s: not a directory to look in", dir))
		case l.options.Untrusted && file.Outside(dir):
			l.fail(&FileError{dir, file.ErrOutside})
		default:
			l.in.bounds.name(dir)
			l.in.lookup = append(l.in.lookup, dir)
		}
	}
}

// readAround reads the lookup directories, at every depth. An unreadable file is not an error: the user did not name
// it.
func (l *loader) readAround() {
	l.walkOutside(func(name string) error {
		if l.ctx.Err() != nil {
			return fs.SkipAll
		}
		if isManifestName(name) {
			l.in.around = l.referable(l.in.around, name)
		}
		return nil
	})
	l.parse(l.in.around)
}

// walkOutside visits the files of the lookup directories up to the limit of manifests.
func (l *loader) walkOutside(visit func(name string) error) {
	budget := maxSurroundings
	for _, dir := range l.in.lookup {
		// The separator at the end makes the walk follow dir itself if it is a link.
		_ = filepath.WalkDir(dir+string(filepath.Separator), func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				l.in.around = append(l.in.around, unread(err))
				return nil
			case e.IsDir() && filepath.Clean(name) != filepath.Clean(dir) && skipDir(e, l.skip):
				return fs.SkipDir
			case e.IsDir():
				return nil
			case isLink(e) && !isManifestName(name):
				l.linked(dir, name, e)
			}
			if isManifestName(name) {
				if budget--; budget < 0 {
					l.in.unread = true
					return fs.SkipAll
				}
				if l.outside(dir, name, e) {
					return nil
				}
			}
			return visit(name)
		})
	}
}

// nearest returns the definitions that are the fewest directories away from the input: a repository may define an
// object once per cluster. Two definitions with the same text count as one.
func (s *Set) nearest(same []*Object) []*Object {
	var near []*Object
	least := math.MaxInt
	for _, o := range same {
		steps := s.stepsTo(filepath.Dir(o.Pos.File))
		switch {
		case steps < least:
			near, least = []*Object{o}, steps
		case steps == least && !slices.ContainsFunc(near, o.sameText):
			near = append(near, o)
		}
	}
	return near
}

// stepsTo counts the directories between dir and the nearest directory of the input, up and down.
func (s *Set) stepsTo(dir string) int {
	least := math.MaxInt - 1
	for _, from := range slices.Concat(s.dirs, s.roots) {
		if steps, ok := StepsBetween(from, dir); ok {
			least = min(least, steps)
		}
	}
	return least
}

// StepsBetween counts the directories between two, up and down. It returns false if the number is not known.
func StepsBetween(from, to string) (int, bool) {
	if filepath.IsAbs(from) != filepath.IsAbs(to) {
		var errs [2]error
		from, errs[0] = filepath.Abs(from)
		to, errs[1] = filepath.Abs(to)
		if errs[0] != nil || errs[1] != nil {
			return 0, false
		}
	}
	rel, err := filepath.Rel(from, to)
	if err != nil {
		return 0, false
	}
	if rel == "." {
		return 0, true
	}
	return strings.Count(filepath.ToSlash(rel), "/") + 1, true
}

// sameText reports whether two objects were written with the same text. An object in a List equals no other object.
func (o *Object) sameText(other *Object) bool {
	if o.at.doc == nil || other.at.doc == nil || len(o.at.path) > 0 || len(other.at.path) > 0 {
		return false
	}
	return bytes.Equal(bytes.TrimSpace(o.at.doc.text), bytes.TrimSpace(other.at.doc.text))
}

// surrounded reports whether the input is only files as hooks pass them, with lookup directories that contain the builds that
// these files are part of. Then the lookup directories are built, and the input is the objects that the files affect.
func (l *loader) surrounded() bool {
	return len(l.options.Files) == 0 && len(l.options.Offered) > 0 && len(l.in.lookup) > 0
}

// surround reads the lookup directories. Files that were not passed are only for references.
func (l *loader) surround() {
	passed := &files{}
	for _, name := range l.options.Offered {
		if info, err := os.Stat(name); err == nil {
			passed.first(info)
		}
	}
	known := map[string]bool{}
	l.walkOutside(func(name string) error {
		if l.ctx.Err() != nil {
			return fs.SkipAll
		}
		if at := filepath.Dir(name); IsKustomizationFile(name) && !known[at] {
			known[at] = true
			l.in.Dirs = append(l.in.Dirs, at)
		}
		if isManifestName(name) {
			l.surrounding(name, passed)
		}
		return nil
	})
}

// surrounding reads a file of a lookup directory. A file that was not passed need not be a manifest.
func (l *loader) surrounding(name string, passed *files) {
	data, err := l.other(name)
	info, failed := os.Stat(name)
	f := &File{Name: name, Walked: true, offered: true, referenceOnly: failed != nil || !passed.has(info)}
	switch {
	case err != nil && f.referenceOnly:
		l.in.around = append(l.in.around, unread(err))
	case f.referenceOnly && !referable(data), data == nil && err == nil:
	case err != nil:
		l.fail(err)
	default:
		l.add(f, data)
	}
}
