package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
)

// surrounded reports whether all of the input are files as hooks pass them, and the directories are known that hold
// what they are part of. Then these are built, and the input is what the files take part in.
func (l *loader) surrounded() bool {
	return len(l.options.Files) == 0 && len(l.options.Offered) > 0 && len(l.in.lookup) > 0
}

// surround reads the lookup directories. What is not in the files that were passed is there for references alone.
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

// surrounding reads a file of a lookup directory. One that was not passed may be anything.
func (l *loader) surrounding(name string, passed *files) {
	data, err := l.other(name)
	f := &File{Name: name, Walked: true, offered: true, referenceOnly: true}
	if info, failed := os.Stat(name); failed == nil {
		f.referenceOnly = !passed.has(info)
	}
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
