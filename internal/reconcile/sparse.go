package reconcile

import (
	"io/fs"
	"path"
	"strings"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
)

// keepOnly leaves of a working tree's copy what a sparse checkout of its commit
// would hold. No directories mean all of it.
func keepOnly(t *fetch.Tree, directories []string) error {
	if len(directories) == 0 {
		return nil
	}
	s := &sparse{tree: t}
	for _, dir := range directories {
		name := inRoot(dir)
		if info, err := t.Root.Stat(name); err != nil || !info.IsDir() {
			return &git.SparseError{Dir: dir}
		}
		s.wanted = append(s.wanted, name)
	}
	return s.prune(".")
}

type sparse struct {
	tree   *fetch.Tree
	wanted []string
}

// prune removes from a directory what is not wanted.
func (s *sparse) prune(dir string) error {
	entries, err := fs.ReadDir(s.tree.Root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case s.below(name):
		case e.IsDir() && s.above(name):
			err = s.prune(name)
		default:
			err = s.tree.Root.RemoveAll(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sparse) below(name string) bool {
	for _, w := range s.wanted {
		if w == "." || name == w || strings.HasPrefix(name, w+"/") {
			return true
		}
	}
	return false
}

func (s *sparse) above(name string) bool {
	for _, w := range s.wanted {
		if strings.HasPrefix(w, name+"/") {
			return true
		}
	}
	return false
}
