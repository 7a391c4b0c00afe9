package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/lockfile"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// lockOptions say which lock file there is, and whether a run takes everything from it.
type lockOptions struct {
	file    string
	locked  bool
	from    []string   // a bundle, and those that it stands on
	carried *lock.Lock // of a bundle
	current bool       // the run only wants to know what is locked, if anything is
}

func (o *lockOptions) addFile(fs *pflag.FlagSet) {
	fs.StringVar(&o.file, "lock-file", "", "lock `file` (default: "+lock.FileName+" beside "+configName+", else in the current directory)")
}

func (o *lockOptions) add(fs *pflag.FlagSet) {
	o.addFile(fs)
	fs.BoolVar(&o.locked, "locked", false, "take what the lock file says of each object, and ask no index and no list of tags; exit 4 where it does not fit")
}

func (o *lockOptions) addFrom(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.from, "from", nil, "bundle `file` that stands for every source: nothing else is used, and no connection is opened (repeatable: the bundles that it stands on)")
}

// bundle is the name of the bundle, "" for none.
func (o *lockOptions) bundle() string {
	if o.from == nil {
		return ""
	}
	return filepath.ToSlash(o.from[0])
}

// check refuses a local directory in the place of something that is locked.
func (o *runOptions) checkLocked() error {
	if o.lock.locked && len(o.fetch.sources)+len(o.fetch.sourceDir) > 0 {
		return &exit.UsageError{Err: fmt.Errorf("--locked and --source or --source-dir exclude each other"), Advice: "--locked=false takes what the directories hold"}
	}
	return nil
}

// lockPath is the lock file that the flags mean.
func (a *app) lockPath(o *lockOptions) string {
	switch {
	case o.file != "":
		return o.file
	case filepath.Base(a.file) == configName:
		return filepath.Join(filepath.Dir(filepath.FromSlash(a.file)), lock.FileName)
	}
	return lock.FileName
}

// locked reads the lock for a run that takes everything from it, nil for any other run.
func (a *app) locked(ctx context.Context, o *lockOptions, in *load.Input) (*reconcile.Locked, error) {
	if !o.locked && !o.current {
		return nil, nil
	}
	path := a.lockPath(o)
	if o.carried != nil {
		return &reconcile.Locked{Lock: o.carried, File: o.bundle(), Carried: true, Cluster: lockedCluster(in, path, o.carried)}, nil
	}
	l, err := lockfile.Read(ctx, path)
	switch {
	case err != nil && o.current && o.file == "" && absent(err):
		return nil, nil
	case err != nil:
		return nil, &exit.UsageError{Err: err, Advice: hintOf(err)}
	}
	locked := &reconcile.Locked{Lock: l, File: filepath.ToSlash(path), Cluster: lockedCluster(in, path, l)}
	if o.current {
		locked.Mode = reconcile.LockedFirst
	}
	return locked, nil
}

func hintOf(err error) string {
	if h, ok := err.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}

// lockedCluster is what a lock calls the cluster of an input: by its name, or by its directory as seen from that of the lock
// file. A cluster that is the only one of the input may be a part of what was locked: then it is the one that it lies in, or that
// lies in it.
func lockedCluster(in *load.Input, path string, l *lock.Lock) string {
	for _, name := range []string{in.Called, fromLock(path, in.Begins)} {
		if name != "" && slices.Contains(l.Clusters(), name) {
			return name
		}
	}
	if in.Cluster != "" {
		return in.Cluster
	}
	var found []string
	for _, name := range l.Clusters() {
		for _, dir := range in.Dirs {
			at := fromLock(path, dir)
			if at == name || strings.HasPrefix(at+"/", name+"/") || strings.HasPrefix(name+"/", at+"/") {
				found = append(found, name)
				break
			}
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	if in.Called != "" && hasNeighbours(in) {
		return in.Called
	}
	return ""
}

// hasNeighbours reports whether other clusters begin beside that of the input: its entries need its name then.
func hasNeighbours(in *load.Input) bool {
	above := filepath.Dir(in.Begins)
	entries, err := file.ReadDir(above)
	if err != nil || above == in.Begins {
		return false
	}
	looked := 0
	for _, e := range entries {
		dir := filepath.Join(above, e.Name())
		if !e.IsDir() || dir == in.Begins {
			continue
		}
		if looked++; looked > maxNeighbours {
			return true // which costs a name
		}
		for _, at := range []string{dir, filepath.Join(dir, "flux-system")} {
			if begins(at) {
				return true
			}
		}
	}
	return false
}

// maxNeighbours bounds how many directories are looked into, and how many files in each.
const maxNeighbours = 200

// begins reports whether a cluster may begin in a directory: a file in it holds a Kustomization or a FluxInstance.
func begins(dir string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*.y*ml"))
	if err != nil {
		return false
	}
	for _, name := range names[:min(len(names), maxNeighbours)] {
		f, err := file.OpenInside(name)
		if err != nil {
			continue
		}
		head, _ := io.ReadAll(io.LimitReader(f, maxBeginning)) // what cannot be read begins nothing
		_ = f.Close()
		if bytes.Contains(head, []byte(manifest.KustomizeGroup)) || bytes.Contains(head, []byte("kind: FluxInstance")) {
			return true
		}
	}
	return false
}

// maxBeginning is how much of a file is looked at.
const maxBeginning = 64 << 10

// fromLock is a file or directory as seen from the directory of a lock file, "" if it is not below that.
func fromLock(path, name string) string {
	from, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return ""
	}
	to, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}
