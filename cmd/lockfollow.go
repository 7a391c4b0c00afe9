package cmd

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
)

// read reads the manifests, with --follow-sources also those in the sources that Kustomizations are made of.
func (r *locking) read(ctx context.Context, args []string) ([]*input, error) {
	o := &r.o.run
	if !o.follow {
		return r.app.readClusters(ctx, &o.input, args, "")
	}
	files, err := r.app.read(ctx, &o.input, args, "", true)
	if err != nil {
		return nil, err
	}
	if len(files.clusters) > 1 {
		return nil, &usageError{err: fmt.Errorf("--%s locks one cluster, and the files are those of %s", followFlag, console.Few(files.names())), hint: "name the directory of one cluster with -f"}
	}
	st, err := r.store()
	if err != nil {
		return nil, err
	}
	r.followed = r.app.newFollowing(o, files, st)
	r.followed.closers = append(r.followed.closers, st.Close)
	r.followed.locked = r.lockedBefore
	in, err := r.followed.read(ctx)
	if err != nil {
		return nil, err
	}
	in.brought = r.followed.failed
	return []*input{in}, nil
}

// lockedBefore is what the sources are locked to that are fetched before rendering: those that --update is not about.
func (r *locking) lockedBefore(_ context.Context, in *input) (*reconcile.Locked, error) {
	locked := &reconcile.Locked{Lock: r.lock, File: r.name(), Cluster: in.lockedCluster(r.path, r.lock), Mode: reconcile.LockedFirst}
	if r.o.update {
		var all []*admission.Admitted
		for _, obj := range in.inventory.Objects() {
			if adm, err := in.inventory.Admit(obj); err == nil {
				all = append(all, adm)
			}
		}
		r.selectors = in.selectors
		locked.Anew = r.anew(in, all)
	}
	return locked, nil
}

// store is a store of what is resolved, which goes when the run ends.
func (r *locking) store() (*store.Store, error) {
	dir, err := r.temp.Dir()
	if err != nil {
		return nil, unwritten(err)
	}
	r.stores++
	st, err := store.Open(filepath.Join(dir, strconv.Itoa(r.stores)), store.Options{
		Algorithm: godigest.SHA256, RetentionRecords: 1, Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: r.app.now,
	})
	if err != nil {
		return nil, unwritten(err)
	}
	return st, nil
}

func unwritten(err error) error {
	return fmt.Errorf("cannot write to the temporary directory: %w", err)
}

// has reports whether a file is one of a source that was fetched.
func (f *following) has(file string) bool {
	return f != nil && slices.ContainsFunc(f.fetched, func(s render.Source) bool {
		return strings.HasPrefix(file, s.Kind+"/"+s.Namespace+"/"+s.Name+"/")
	})
}

// inFetched reports whether a file is called as those of a source that was fetched are.
func inFetched(file string) bool {
	parts := strings.SplitN(file, "/", 4)
	return len(parts) == 4 && (reconcile.Kinds().IsSource(parts[0]) || parts[0] == sourcev1.HelmChartKind)
}
