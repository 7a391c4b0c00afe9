package session

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Each calls a function for each input, with console lines about its cluster.
func (w *Worker) Each(inputs []*load.Input, do func(*load.Input) error) error {
	defer w.Console.In("")
	for _, in := range inputs {
		w.Console.In(in.Cluster)
		if err := do(in); err != nil {
			return err
		}
	}
	return nil
}

// Artifacts opens the artifacts directory of a command.
func (w *Worker) Artifacts(o *StoreOptions) (*store.Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if !o.Own {
		if err := refuseTracked(o.Dir); err != nil {
			return nil, err
		}
	}
	st, err := w.openStore(o.Dir, store.Options{Algorithm: godigest.Algorithm(o.Algorithm), RetentionTTL: o.TTL, RetentionRecords: o.Records})
	if err != nil {
		return nil, Unusable("artifacts-dir", err)
	}
	return st, nil
}

// openStore opens a store for objects of all kinds.
func (w *Worker) openStore(dir string, o store.Options) (*store.Store, error) {
	o.Kinds, o.Shared, o.Now = reconcile.Kinds().Names(), reconcile.Kinds().WithoutArtifact(), w.Edges.Now
	return store.Open(dir, o)
}

// check returns an error for a link that the user did not name, and for a file that is not a directory.
func (o *StoreOptions) check() error {
	if info, err := os.Lstat(o.Dir); err == nil && !o.Named && info.Mode()&os.ModeSymlink != 0 {
		return &exit.UsageError{
			Err:    fmt.Errorf("%s is a link, which the repository may have brought: nothing is read or written where it leads", o.Dir),
			Advice: finding.NameLink,
		}
	}
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return &exit.UsageError{Option: "artifacts-dir", Err: fmt.Errorf("%s is not a directory", o.Dir)}
	}
	return nil
}

// ArtifactsOf opens the artifacts directory of a cluster: that of the command, or a part of it if the input has several.
// Artifacts of several clusters are stored once.
func (w *Worker) ArtifactsOf(cluster string, o *StoreOptions, root *store.Store) (*store.Store, error) {
	if cluster == "" {
		return root, nil
	}
	part := *o
	part.Dir = o.DirOf(cluster)
	st, err := w.Artifacts(&part)
	if err == nil {
		st.LinkTo(root)
	}
	return st, err
}

// ClustersDir is the subdirectory of an artifacts directory for the directories of clusters.
const ClustersDir = "clusters"

// ClusterDir returns the part of an artifacts directory for a cluster.
func ClusterDir(dir, cluster string) string {
	return filepath.Join(dir, ClustersDir, filepath.FromSlash(path.Join("/", cluster)))
}

// DirOf returns the artifacts directory of a cluster, below Dir as the user wrote it.
func (o *StoreOptions) DirOf(cluster string) string {
	if cluster == "" {
		return o.Dir
	}
	return ClusterDir(o.Dir, cluster)
}

// AddressOf returns the address of the artifacts directory of a cluster, "" if no address was given.
func (o *StoreOptions) AddressOf(cluster string) string {
	if cluster == "" || o.Advertised == "" {
		return o.Advertised
	}
	return strings.TrimRight(o.Advertised, "/") + "/" + ClustersDir + "/" + cluster
}

// Writable returns an error if an artifacts directory is not writable. It is called once for all objects.
func Writable(st *store.Store) error {
	if err := st.Writable(); err != nil {
		return &exit.UsageError{Option: "artifacts-dir", Err: err, Advice: finding.Unwritable}
	}
	return nil
}

// refuseTracked returns an error if the records of an artifacts directory came with the checkout. Charts are not fetched again
// if a record of them exists: a committer could replace a published chart with their own.
func refuseTracked(dir string) error {
	tracked, err := git.Tracked(filepath.Join(dir, ".helmsrc"))
	if err != nil {
		return &exit.UsageError{
			Err:    fmt.Errorf("%s has records, and whether Git tracks them is not known: %w", dir, err),
			Advice: "make the repository readable, or " + finding.OtherOrAccepted,
		}
	}
	if !tracked {
		return nil
	}
	return &exit.UsageError{
		Err:    fmt.Errorf("%s has records that Git tracks, and which a stranger may have committed: they are not trusted", dir),
		Advice: "remove them from Git with 'git rm -r --cached' and name the directory in .gitignore, or " + finding.OtherOrAccepted,
	}
}
