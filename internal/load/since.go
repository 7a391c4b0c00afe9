package load

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
)

// Since narrows the options to the files that changed since a revision of the repository that is named, as if these were given as arguments:
// all clusters of the repository count that they are part of. If files are gone, everything that was named counts, because what they
// are part of is not known. It returns false if nothing changed. No revision leaves the options as they are.
func (l *Reader) Since(ctx context.Context, o *Options, revision string) (bool, error) {
	wrong := func(err error, advice string) error {
		return &exit.UsageError{Option: "changed-since", Value: revision, Err: err, Advice: advice}
	}
	if revision == "" {
		return true, nil
	}
	if len(o.Names) == 0 || slices.Contains(o.Names, "-") {
		return false, wrong(errors.New("it chooses the files"), "name directories with -f")
	}
	top, ok := git.Top(o.Names[0])
	if !ok {
		return false, wrong(fmt.Errorf("%s is in no Git repository", o.Names[0]), "")
	}
	changed, gone, err := git.ChangedSince(ctx, top, revision, l.Getenv)
	if missing, ok := errors.AsType[*git.RevisionError](err); ok {
		return false, &exit.UsageError{Option: "changed-since", Err: err, Advice: missing.Hint()}
	}
	if err != nil {
		return false, err
	}
	wide := gone
	for _, name := range changed {
		if path.Base(name) == ".sourceignore" {
			wide = append(wide, name)
		}
	}
	if len(wide) > 0 {
		l.Console.Info(console.Subject{}, fmt.Sprintf("everything named is taken: since %s these files were removed, or say what is ignored: %s", revision, console.Few(wide)))
		return true, nil
	}
	if len(changed) == 0 {
		l.Console.Info(console.Subject{}, "nothing changed since "+revision)
		return false, nil
	}
	if rel, err := filepath.Rel(git.RealPath("."), top); err == nil {
		top = rel
	}
	for _, name := range changed {
		o.Offered = append(o.Offered, filepath.Join(top, filepath.FromSlash(name)))
	}
	o.LookupDirs, o.Names, o.AllowEmpty = append(o.LookupDirs, top), nil, true
	return true, nil
}
