package fetch

import (
	"os"
	"time"
)

// A Tree is what a Git repository, a bucket or a working tree holds, before it is stored as an artifact.
type Tree struct {
	// Root is a temporary directory with the files, and without symbolic links: artifacts have none. It is nil if
	// Unchanged.
	Root     *os.Root
	Revision string
	Time     time.Time // of the commit; the zero time if there is none

	// Unchanged tells that the revision is the one that need not be fetched again.
	Unchanged bool

	Subject    string         // the first line of the commit's message
	Signatures []GitSignature // that were verified
	Verified   string         // whose signatures were verified, in several lines, as source-controller says it
	Files      int
	Warnings   []string

	dir string
}

// Close removes the files.
func (t *Tree) Close() error {
	if t == nil || t.Root == nil {
		return nil
	}
	err := t.Root.Close()
	if removed := os.RemoveAll(t.dir); err == nil {
		err = removed
	}
	return err
}

// newTree makes an empty directory. It is the user's alone, as artifacts are.
func newTree(parent string) (*Tree, error) {
	dir, err := os.MkdirTemp(parent, "helmsrc-tree-*")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return &Tree{Root: root, dir: dir}, nil
}
