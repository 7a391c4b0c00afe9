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
	"github.com/helmsrc/helmsrc/internal/finding"
)

var layoutPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v\d+$`) })

// Recorded reports whether the directory contains records. It changes nothing.
func (s *Store) Recorded() (bool, error) {
	layouts, err := layoutsIn(s.dir)
	return len(layouts) > 0, err
}

// refuseLayout returns a [*finding.Problem] for a directory of a newer program, whose layout may differ in every
// respect. A missing or unreadable directory is not an error here: the next use of it reports that.
func refuseLayout(dir string) error {
	layouts, _ := layoutsIn(dir)
	for _, layout := range layouts {
		if layout != path.Base(stateDir) {
			return &finding.Problem{
				Text:   fmt.Sprintf("%s has layout %s, which this helmsrc does not know", dir, layout),
				Advice: "a newer helmsrc wrote it: use that one, or name another directory",
			}
		}
	}
	return nil
}

// layoutsIn returns the layouts of the records in a directory.
func layoutsIn(dir string) ([]string, error) {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("artifacts directory: %w", err)
	}
	v := newView(root)
	defer func() { _ = v.close() }() // no write to lose
	names, err := v.subdirs(path.Dir(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(names, func(name string) bool { return !layoutPattern().MatchString(name) }), err
}

// UnknownKinds returns, in order, the kinds of recorded objects that are in neither Options.Kinds nor Options.Shared.
// A newer program has recorded them.
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
