package store

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// links are the artifacts of several stores in one directory, by digest: a store links an artifact that another has
// stored. They are safe for concurrent use.
type links struct {
	mu    sync.Mutex
	files map[string]linked
}

// linked is an artifact, with its file info at the time its digest was known.
type linked struct {
	name string // below the directory of all stores
	info fs.FileInfo
}

// LinkTo makes equal artifacts of the stores below the directory of whole share one file, if they were stored or
// verified since. It must be called before the first artifact is stored.
func (s *Store) LinkTo(whole *Store) {
	if rel, err := filepath.Rel(whole.dir, s.dir); err == nil && filepath.IsLocal(rel) {
		s.whole, s.part = whole, filepath.ToSlash(rel)
	}
}

// noteBytes records the digest of an artifact. The function returns the info of its file.
func (s *Store) noteBytes(artifact, digest string, stat func() (fs.FileInfo, error)) {
	if s.whole == nil {
		return
	}
	info, err := stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	l := &s.whole.links
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]linked{}
	}
	if _, ok := l.files[digest]; !ok {
		l.files[digest] = linked{path.Join(s.part, artifact), info}
	}
}

// link makes temp a hard link to an artifact with the same bytes, if there is one and the file system allows it. It
// reports whether it did.
func (s *Store) link(v *view, temp string, a Artifact) bool {
	if s.whole == nil {
		return false
	}
	s.whole.links.mu.Lock()
	from, ok := s.whole.links.files[a.Digest]
	s.whole.links.mu.Unlock()
	if !ok {
		return false
	}
	whole, err := s.whole.existing()
	if err != nil {
		return false
	}
	name := path.Join(path.Dir(temp), tempPrefix+rand.Text())
	if whole.root.Link(from.name, path.Join(s.part, name)) != nil {
		return false
	}
	// Another process may have stored other bytes there by now.
	info, err := v.Lstat(name)
	if err == nil && os.SameFile(info, from.info) && info.Size() == a.Size && info.ModTime().Equal(from.info.ModTime()) && v.Rename(name, temp) == nil {
		return true
	}
	_ = v.removeFile(name)
	return false
}

// maxParts is the limit of directories that are searched for stores, maxDepth the limit of their depth.
const maxParts, maxDepth = 10_000, 16

var errParts = errors.New("too many directories")

// Parts returns the names of the stores below a directory of this store, in order.
func (s *Store) Parts(dir string) ([]string, error) {
	v, err := s.existing()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	looked := 0
	err = fs.WalkDir(v.root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case d.Name() == path.Dir(stateDir):
			names = append(names, path.Dir(rel))
			return fs.SkipDir
		case strings.Count(rel, "/") > maxDepth:
			return fs.SkipDir
		}
		if looked++; looked > maxParts {
			return errParts
		}
		return nil
	})
	return names, err
}
