package store

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
)

// Collect removes earlier artifacts of the object, whose lock must be held, and returns how many: those older than
// RetentionTTL, then the oldest until RetentionRecords are left. The current one, given by its file name or path, and
// the target of the link always stay.
//
// Call it after a success only: unlike source-controller, which collects first, a run that fails then leaves everything
// as it was.
func (s *Store) Collect(key Key, current string) (int, error) {
	key, v, err := s.locked(key)
	if err != nil {
		return 0, err
	}
	files, err := v.artifacts(key)
	if err != nil {
		return 0, err
	}
	if len(files) == 1 && files[0].Name() == path.Base(current) {
		return 0, nil
	}
	keep := append(v.linked(key), path.Base(current))
	removed := 0
	var errs []error
	for _, file := range s.garbage(files, keep) {
		if err := v.removeFile(path.Join(key.dir(), file)); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// garbage returns the names of the files to remove.
func (s *Store) garbage(files []fs.FileInfo, keep []string) (names []string) {
	now := s.options.Now()
	var candidates []fs.FileInfo
	left := len(files)
	for _, fi := range files {
		switch {
		case slices.Contains(keep, fi.Name()):
		case now.Sub(fi.ModTime()) > s.options.RetentionTTL:
			names = append(names, fi.Name())
			left--
		default:
			candidates = append(candidates, fi)
		}
	}
	// Equal times are common if the clock is fixed, so names break ties.
	slices.SortFunc(candidates, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, fi := range candidates {
		if left <= max(s.options.RetentionRecords, 1) {
			break
		}
		names = append(names, fi.Name())
		left--
	}
	return names
}

// isStored reports whether an entry of an object's directory is an artifact.
func isStored(e fs.DirEntry) bool { return e.Type().IsRegular() && isArtifact(e.Name()) }

// artifacts lists the artifacts of the object.
func (v *view) artifacts(key Key) ([]fs.FileInfo, error) {
	entries, err := v.ReadDir(key.dir())
	if err != nil {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if !isStored(e) {
			continue
		}
		fi, err := v.Lstat(path.Join(key.dir(), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, fi)
	}
	return files, nil
}

// linked returns the files that the object's links point to.
func (v *view) linked(key Key) (files []string) {
	for _, link := range []string{LinkIndex, LinkLatest} {
		if target, err := v.Readlink(path.Join(key.dir(), link)); err == nil {
			files = append(files, target)
		}
	}
	return files
}
