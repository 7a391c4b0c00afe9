package cmd

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
	"github.com/spf13/cobra"

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

// mergeOptions are the flags of merge.
type mergeOptions struct {
	input       inputOptions // of status: all of it
	output      outputOptions
	report      reportOptions
	store       storeOptions
	concurrency int
}

func newMergeCommand(a *app) *cobra.Command {
	o := &mergeOptions{}
	c := &cobra.Command{
		Use:     "merge DIR...",
		GroupID: groupArtifacts,
		Short:   "Join the artifacts directories of shards",
		Long: `Join artifacts directories into one, and print the objects with their status, as status
does: each DIR is the artifacts directory of 'helmsrc fetch --shard I/N'. The directories
are only read, and each artifact is checked. All shards of a selection have to be there,
and complete; other directories are joined as they are.

A source that several shards need may have changed while they ran: the newest counts,
with a warning. Any other object that two directories hold with other bytes is an
error; it is left out, and the others are joined. A merge that was interrupted can be
repeated.

Exit codes: 0 all ready, 1 an object is not ready or was left out, 2 wrong usage, or a
shard is missing, 3 an artifact is altered.`,
		Example: `  helmsrc merge shard-0 shard-1
  helmsrc merge shard-0 shard-1 -d whole -o table`,
	}
	fs := c.Flags()
	o.store.addDir(fs)
	o.store.addAddress(fs)
	o.output.addFormat(fs)
	o.report.add(fs)
	fs.IntVar(&o.concurrency, "concurrency", 8, "`number` of objects that are copied at a time")
	fs.BoolVar(&o.input.exitZero, "exit-zero", false, "exit 0 also when an object failed")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := errors.Join(o.output.check(a.env), o.report.check(true), o.store.check(a)); err != nil {
			return exit.Usage, err
		}
		if o.concurrency < 1 {
			return exit.Usage, exit.Usagef("--concurrency must be positive, got %d", o.concurrency)
		}
		return a.merge(ctx, o, args)
	})
	return c
}

func (a *app) merge(ctx context.Context, o *mergeOptions, args []string) (int, error) {
	root, err := a.worker.Artifacts(&o.store.StoreOptions)
	if err != nil {
		return exit.Usage, err
	}
	defer root.Close()
	names, err := a.clustersAmong(args)
	if err != nil {
		return exit.Usage, err
	}
	code := exit.OK
	for _, name := range names {
		joined, err := a.mergeCluster(ctx, o, root, name, args)
		if err != nil {
			return joined, err
		}
		code = exit.Worst(code, joined)
	}
	if err := root.Close(); err != nil {
		return exit.Failed, err
	}
	o.input.AllowEmpty = true
	rest, err := a.status(ctx, &o.input, &o.output, &o.store, &o.report, nil)
	if o.input.exitZero {
		return rest, err
	}
	return exit.Worst(code, rest), err
}

// clustersAmong are the clusters that directories hold parts of, in order; "" is what is in the directories themselves.
func (a *app) clustersAmong(dirs []string) ([]string, error) {
	found := map[string]bool{}
	for _, dir := range dirs {
		if !file.IsDir(dir) {
			continue // which is reported where it is opened
		}
		st, err := store.Open(dir, store.Options{Now: a.now})
		if err != nil {
			return nil, session.Unusable("", err)
		}
		names, err := st.Parts(session.ClustersDir)
		if err == nil && st.CheckLayout() == nil {
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

// mergeCluster joins what the directories hold of a cluster.
func (a *app) mergeCluster(ctx context.Context, o *mergeOptions, root *store.Store, cluster string, args []string) (int, error) {
	part := *o
	part.store.Dir = o.store.DirOf(cluster)
	if cluster != "" {
		args = slices.Clone(args)
		for i, dir := range args {
			args[i] = session.ClusterDir(dir, cluster)
		}
	}
	to, err := a.worker.ArtifactsOf(cluster, &o.store.StoreOptions, root)
	if err != nil {
		return exit.Usage, err
	}
	if to != root {
		defer to.Close()
	}
	return a.join(ctx, &part, to, args)
}

// join joins directories.
func (a *app) join(ctx context.Context, o *mergeOptions, to *store.Store, args []string) (int, error) {
	from, err := a.openParts(o, args)
	defer func() {
		for _, d := range from {
			_ = d.Store.Close() // nothing was written through it
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
	out, err := merge.Join(a.worker.ReportsWaiting(ctx), to, from, merge.Options{
		Moves: func(kind string) bool {
			kind, _ = reconcile.Kinds().Named(kind)
			return kind != sourcev1.HelmChartKind && reconcile.Kinds().IsSource(kind)
		},
		Link: func(kind string) string {
			kind, _ = reconcile.Kinds().Named(kind)
			return reconcile.Kinds().Link(kind)
		},
		Check:       reconcile.CheckForeign,
		Concurrency: o.concurrency,
	})
	if err != nil {
		return max(exit.Failed, exit.CodeOf(err)), err
	}
	code := a.reportMerge(out)
	a.console.Info(console.Subject{}, fmt.Sprintf("%d directories: %d objects joined, %d were there, %d left out", len(from), out.Joined, out.Unchanged, len(out.Failed)))
	return code, nil
}

// openParts opens the directories that are joined: artifacts directories, each once, and none of them the one they go to.
func (a *app) openParts(o *mergeOptions, args []string) (from []merge.Directory, err error) {
	if len(args) == 0 {
		return nil, &exit.UsageError{Err: errors.New("no directories to join"), Advice: "name the artifacts directories of all shards: helmsrc merge DIR..."}
	}
	var infos []os.FileInfo
	var records int
	for _, name := range args {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return from, &exit.UsageError{Err: fmt.Errorf("%s: no such directory", name), Advice: "each shard has an artifacts directory, even one without objects: fetch it again"}
		case err != nil:
			return from, &exit.UsageError{Err: err}
		case !info.IsDir():
			return from, exit.Usagef("%s is not a directory", name)
		case file.Same(name, o.store.Dir):
			return from, &exit.UsageError{Err: fmt.Errorf("%s is the directory that the others are joined into", name), Advice: "name another one with --artifacts-dir, or leave it out of the list"}
		case slices.ContainsFunc(infos, func(other os.FileInfo) bool { return os.SameFile(info, other) }):
			return from, exit.Usagef("%s is named twice", name)
		}
		infos = append(infos, info)
		st, err := store.Open(name, store.Options{Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: a.now})
		if err != nil {
			return from, session.Unusable("", err)
		}
		from = append(from, merge.Directory{Name: filepath.Clean(name), Store: st})
		var layout *store.LayoutError
		err = st.CheckLayout()
		switch {
		case errors.As(err, &layout):
			return from, &exit.UsageError{Err: fmt.Errorf("%s is no artifacts directory: nothing is recorded in it", name), Advice: "name what 'helmsrc fetch --shard' wrote to with --artifacts-dir"}
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

// completeParts refuses parts of one selection that are not all there. Directories that say nothing of parts are joined
// as they are.
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
		return &exit.UsageError{Err: fmt.Errorf("no directory holds shard %s: %s is of no run that was finished", console.Few(missing), strings.Join(silent, ", ")), Advice: "run 'helmsrc fetch --shard' for these again"}
	}
	return &exit.UsageError{Err: fmt.Errorf("no directory holds shard %s", console.Few(missing)), Advice: "name the directories of all shards"}
}

// reportMerge reports what was left out, and what changed between the parts.
func (a *app) reportMerge(out *merge.Outcome) int {
	code := exit.OK
	for _, c := range out.Moved {
		f := validate.New(nil, finding.MergedNewest, objectName(c.Key)+": "+c.Error()+"; the newest is taken", "", manifest.Excerpt{})
		a.console.Report(f)
	}
	for _, e := range out.Failed {
		var altered *merge.AlteredError
		if errors.As(e.Err, &altered) {
			code = exit.Worst(code, exit.Integrity)
		}
		code = exit.Worst(code, exit.Failed)
		a.console.Report(validate.New(nil, finding.NotMerged, objectName(e.Key)+": "+e.Err.Error(), "", manifest.Excerpt{}))
	}
	return code
}
