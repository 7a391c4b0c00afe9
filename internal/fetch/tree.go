package fetch

import (
	"cmp"
	"os"
	"time"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// A Tree holds the files of a Git repository, a bucket or a working tree, before they are stored as an artifact. A fetch
// function makes it; its user may add files below Root until they are archived, and must close it, which removes them.
type Tree struct {
	// Root is a temporary directory with the files, without symbolic links, because artifacts have no links. It is nil
	// if Unchanged, or if only the revision is of use.
	Root     *os.Root
	Revision string
	Time     time.Time // of the commit; zero without a commit

	// Unchanged reports that the source still has the revision that need not be fetched again.
	Unchanged bool

	Subject    string      // the first line of the commit's message
	Signatures []Signature // that were verified
	Verified   string      // the verified signatures, in several lines, as in source-controller's message
	Files      int
	Warnings   []string // about submodules
	Unread     []string // about files that have a say, or would be in the tree

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

// NewTree makes an empty directory. It is the user's alone, as artifacts are.
func NewTree(parent string) (*Tree, error) {
	dir, err := os.MkdirTemp(parent, "helmsrc-tree-*")
	if err != nil {
		return nil, err
	}
	root, err := file.OpenRoot(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return &Tree{Root: root, dir: dir}, nil
}

// Signature is a signature of a commit or a tag that was verified.
type Signature struct {
	Object string // commit or tag
	Name   string // the hash, or NAME@sha1:HASH of a tag
	Key    string // its ID, or the fingerprint of an SSH key
	Format string
}

// TreeLimits sets the defaults of limits that are not set.
func TreeLimits(l tree.Limits) tree.Limits {
	l.Entries = cmp.Or(l.Entries, tree.DefaultEntries)
	l.File = cmp.Or(l.File, tree.DefaultFile)
	l.Total = cmp.Or(l.Total, tree.DefaultTotal)
	return l
}

// Dir returns the name of the temporary directory with the files.
func (t *Tree) Dir() string { return t.dir }
