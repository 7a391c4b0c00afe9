package recorded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/merge"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Join joins artifacts directories into one, cluster by cluster. The exit code is also valid with an error.
func Join(ctx context.Context, w *session.Worker, o *session.StoreOptions, dirs []string, concurrency int) (code int, err error) {
	d, err := Open(w, o)
	if err != nil {
		return exit.Usage, err
	}
	defer func() {
		if closed := d.Close(); err == nil && closed != nil {
			code, err = exit.Failed, closed
		}
	}()
	names, err := d.clustersAmong(dirs)
	if err != nil {
		return exit.Usage, err
	}
	for _, name := range names {
		joined, err := d.joinCluster(ctx, name, dirs, concurrency)
		if err != nil {
			return joined, err
		}
		code = exit.Worst(code, joined)
	}
	return code, nil
}

// clustersAmong returns the clusters with a part in one of the directories, in order; "" is the directory itself.
func (d *Directory) clustersAmong(dirs []string) ([]string, error) {
	found := map[string]bool{}
	for _, dir := range dirs {
		if !file.IsDir(dir) {
			continue // openParts reports it
		}
		st, err := store.Open(dir, store.Options{Now: d.w.Edges.Now})
		if err != nil {
			return nil, session.Unusable("", err)
		}
		names, err := st.Parts(session.ClustersDir)
		if recorded, _ := st.Recorded(); err == nil && recorded {
			names = append(names, "")
		}
		for _, name := range names {
			found[name] = true
		}
		if err = errors.Join(err, st.Close()); err != nil {
			return nil, &exit.UsageError{Err: fmt.Errorf("%s: %w", dir, err)}
		}
	}
	if len(found) == 0 {
		return []string{""}, nil
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// joinCluster joins the parts of a cluster.
func (d *Directory) joinCluster(ctx context.Context, cluster string, dirs []string, concurrency int) (int, error) {
	if cluster != "" {
		dirs = slices.Clone(dirs)
		for i, dir := range dirs {
			dirs[i] = session.ClusterDir(dir, cluster)
		}
	}
	to, err := d.of(cluster)
	if err != nil {
		return exit.Usage, err
	}
	defer d.done(to)
	from, err := d.openParts(d.o.DirOf(cluster), dirs)
	defer func() {
		for _, part := range from {
			_ = part.Store.Close() // no write to lose
		}
	}()
	if err != nil {
		return exit.Usage, err
	}
	if err := completeParts(from); err != nil {
		return exit.Usage, err
	}
	if err := session.Writable(to); err != nil {
		return exit.Usage, err
	}
	out, err := merge.Join(d.w.ReportsWaiting(ctx), to, from, merge.Options{
		Moves: func(kind string) bool {
			kind, _ = reconcile.Kinds().Named(kind)
			return kind != sourcev1.HelmChartKind && reconcile.Kinds().IsSource(kind)
		},
		Link: func(kind string) string {
			kind, _ = reconcile.Kinds().Named(kind)
			return reconcile.Kinds().Link(kind)
		},
		Check:       reconcile.CheckForeign,
		Concurrency: concurrency,
	})
	if err != nil {
		return max(exit.Failed, exit.CodeOf(err)), err
	}
	code := d.reportMerge(out)
	d.w.Console.Info(console.Subject{}, fmt.Sprintf("%d directories: %d objects joined, %d were there, %d left out", len(from), out.Joined, out.Unchanged, len(out.Failed)))
	return code, nil
}

// openParts opens the directories to join. Each must be an artifacts directory, appear once, and not be the target.
func (d *Directory) openParts(to string, dirs []string) (from []merge.Directory, err error) {
	if len(dirs) == 0 {
		return nil, &exit.UsageError{Err: errors.New("no directories to join"), Advice: "name the artifacts directories of all shards: helmsrc merge DIR..."}
	}
	var infos []os.FileInfo
	var records int
	for _, name := range dirs {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return from, &exit.UsageError{Err: fmt.Errorf("%s: no such directory", name), Advice: "each shard has an artifacts directory, even one without objects: fetch it again"}
		case err != nil:
			return from, &exit.UsageError{Err: err}
		case !info.IsDir():
			return from, exit.Usagef("%s is not a directory", name)
		case file.Same(name, to):
			return from, &exit.UsageError{Err: fmt.Errorf("%s is the target directory", name), Advice: finding.OtherTarget}
		case slices.ContainsFunc(infos, func(other os.FileInfo) bool { return os.SameFile(info, other) }):
			return from, exit.Usagef("%s is named twice", name)
		}
		infos = append(infos, info)
		st, err := store.Open(name, store.Options{Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: d.w.Edges.Now})
		if err != nil {
			return from, session.Unusable("", err)
		}
		from = append(from, merge.Directory{Name: filepath.Clean(name), Store: st})
		recorded, err := st.Recorded()
		switch {
		case err == nil && !recorded:
			return from, &exit.UsageError{Err: fmt.Errorf("%s is not an artifacts directory: nothing is recorded in it", name), Advice: finding.NameShards}
		case err != nil:
			return from, &exit.UsageError{Err: err}
		}
		if err := st.Load(); err != nil {
			return from, &exit.UsageError{Err: fmt.Errorf("%s: %w", name, err)}
		}
		if records += st.SharedSize(); records > store.MaxSharedRecords {
			return from, exit.Usagef("the directories up to %s have more than %d MiB of records", name, store.MaxSharedRecords>>20)
		}
		if err := session.KnownKinds(st, name, "join"); err != nil {
			return from, &exit.UsageError{Err: err}
		}
	}
	return from, nil
}

// completeParts returns an error if parts of one selection are missing. Directories without a record of a part are
// joined without this check.
func completeParts(from []merge.Directory) error {
	parts := map[int]string{}
	var first store.Shard
	var named, silent []string
	for _, d := range from {
		part, err := d.Store.ReadShard()
		if errors.Is(err, fs.ErrNotExist) {
			silent = append(silent, d.Name)
			continue
		}
		if err != nil {
			return &exit.UsageError{Err: fmt.Errorf("%s: %w", d.Name, err)}
		}
		if len(named) == 0 {
			first = part
		}
		named = append(named, d.Name)
		switch {
		case part.Count != first.Count:
			return &exit.UsageError{Err: fmt.Errorf("%s is shard %s, and %s is shard %s", named[0], first, d.Name, part), Advice: "fetch all shards with the same number of them"}
		case part.Selection != first.Selection:
			return &exit.UsageError{Err: fmt.Errorf("%s and %s are shards of other selections: the manifests or the arguments differ", named[0], d.Name), Advice: "fetch all shards of the same revision of the manifests, with the same flags"}
		}
		parts[part.Index] = d.Name
	}
	var missing []string
	for i := range first.Count {
		if _, ok := parts[i]; !ok {
			missing = append(missing, strconv.Itoa(i)+"/"+strconv.Itoa(first.Count))
		}
	}
	switch {
	case len(missing) == 0:
		return nil
	case len(silent) > 0:
		return &exit.UsageError{Err: fmt.Errorf("no directory contains shard %s: %s is from a run that did not finish", console.Few(missing), strings.Join(silent, ", ")), Advice: finding.ShardsAgain}
	}
	return &exit.UsageError{Err: fmt.Errorf("no directory contains shard %s", console.Few(missing)), Advice: "name the directories of all shards"}
}

// reportMerge reports the objects that were left out, and those that differ between the parts. It returns the exit code.
func (d *Directory) reportMerge(out *merge.Outcome) int {
	code := exit.OK
	for _, c := range out.Moved {
		f := validate.New(nil, finding.MergedNewest, objectName(c.Key)+": "+c.String()+"; the newest is used", "", manifest.Excerpt{})
		d.w.Console.Report(f)
	}
	for _, e := range out.Failed {
		var altered *merge.AlteredError
		if errors.As(e.Err, &altered) {
			code = exit.Worst(code, exit.Integrity)
		}
		code = exit.Worst(code, exit.Failed)
		d.w.Console.Report(validate.New(nil, finding.NotMerged, objectName(e.Key)+": "+e.Err.Error(), "", manifest.Excerpt{}))
	}
	return code
}
