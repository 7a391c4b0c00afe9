package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/file"
)

// A LayoutError reports that a directory is no artifacts directory, or one of a layout that is not known.
type LayoutError struct {
	Dir    string
	Layout string // may be empty
}

func (e *LayoutError) Error() string {
	if e.Layout == "" {
		return fmt.Sprintf("%s is no artifacts directory: nothing is recorded in it", e.Dir)
	}
	return fmt.Sprintf("%s has layout %s, which this helmsrc does not know", e.Dir, e.Layout)
}

// Hint says which program knows it.
func (e *LayoutError) Hint() string {
	if e.Layout == "" {
		return ""
	}
	return "a newer helmsrc wrote it: use that one, or name another directory"
}

var layoutPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v\d+$`) })

// CheckLayout returns a [*LayoutError] for a directory in which nothing is recorded. It changes nothing.
func (s *Store) CheckLayout() error {
	layouts, err := layoutsIn(s.dir)
	if err == nil && len(layouts) == 0 {
		return &LayoutError{Dir: s.dir}
	}
	return err
}

// refuseLayout returns a [*LayoutError] for a directory that a newer program wrote, which may keep anything otherwise than this
// one. A directory that is not there, or cannot be read, is not an error here: what is done with it says so.
func refuseLayout(dir string) error {
	layouts, err := layoutsIn(dir)
	if err != nil {
		return nil
	}
	for _, layout := range layouts {
		if layout != path.Base(stateDir) {
			return &LayoutError{Dir: dir, Layout: layout}
		}
	}
	return nil
}

// layoutsIn are the layouts in which something is recorded in a directory.
func layoutsIn(dir string) ([]string, error) {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("artifacts directory: %w", err)
	}
	v := newView(root)
	defer func() { _ = v.close() }() // nothing was written through it
	names, err := v.subdirs(path.Dir(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return !layoutPattern().MatchString(name) }), err
}

// UnknownKinds returns, in order, the kinds of which something is recorded and that are in neither Options.Kinds nor
// Options.Shared: a newer program knows them.
func (s *Store) UnknownKinds() ([]string, error) {
	shared, err := s.sharedKeys()
	if err != nil {
		return nil, err
	}
	own, err := s.ownKeys()
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, key := range append(shared, own...) {
		is := func(kind string) bool { return strings.EqualFold(kind, key.Kind) }
		if !slices.ContainsFunc(s.options.Kinds, is) && !slices.ContainsFunc(s.options.Shared, is) {
			unknown = append(unknown, key.Kind)
		}
	}
	slices.Sort(unknown)
	return slices.Compact(unknown), nil
}
