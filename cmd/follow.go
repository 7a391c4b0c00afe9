package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

const (
	followFlag = "follow-sources"

	// maxFollowRounds bounds how often what was fetched leads to sources that have to be fetched.
	maxFollowRounds = 10
	// maxFollowed bounds how many sources are fetched before rendering: the manifests in them may name any number.
	maxFollowed = 500
)

func (o *runOptions) addFollow(fs *pflag.FlagSet) {
	fs.BoolVar(&o.follow, followFlag, false, "fetch the sources that Kustomizations and ArtifactGenerators are made of, and that are not in the checkout, before rendering; again for what is in these, 10 times at most")
}

// following gets the sources that have to be there before anything is built. It ends with the run.
type following struct {
	ctx context.Context // of the run
	app *app
	o   *runOptions
	r   *load.Reading
	c   *load.Cluster

	shared *session.Session

	st  *store.Store // of the run
	dir *store.Store // of --source-dir, nil for none

	locked func(context.Context, *load.Input) (*reconcile.Locked, error) // what the sources are locked to

	rounds, count int // of what was fetched

	fetched  []render.Source
	stands   map[store.Key]string // of --source-dir, those that are nowhere in the input too
	finished map[store.Key]*reconcile.Result
	failed   map[store.Key]bool // fetched in vain
	err      error              // that ended it
}

// followings get the sources of each cluster.
type followings map[*render.Cluster]*following

func (all followings) provide(c *render.Cluster, needs []render.Need, known *manifest.Build) []render.Source {
	if f := all[c]; f != nil {
		return f.provide(needs, known)
	}
	return nil
}

// readRun reads the input of a run, one for each cluster. What is not in the checkout is taken from where an earlier run stored
// it or, with --follow-sources, fetched first.
func (a *app) readRun(ctx context.Context, o *runOptions, shared *session.Session, args []string, root *store.Store) ([]*member, error) {
	return a.readMembers(ctx, o, args, o.store.dir, func(c *load.Cluster, m *member) (err error) {
		if m.st, err = a.storeOf(c.Shown, &o.store, root); err == nil {
			m.followed = a.newFollowing(ctx, o, shared, c, m.st)
			m.followed.dir, err = a.openSourceDir(o, c.Shown)
		}
		return err
	})
}

// readMembers reads the clusters of a run. What open makes of each is in what is returned also with an error.
func (a *app) readMembers(ctx context.Context, o *runOptions, args []string, artifactsDir string, open func(*load.Cluster, *member) error) (members []*member, err error) {
	all := followings{}
	options, err := a.loadOptions(&o.input, args, artifactsDir)
	if err != nil {
		return nil, err
	}
	r, err := a.worker.Choose(ctx, options, all.provide)
	if err != nil {
		return nil, withOption(err)
	}
	defer a.console.In("")
	for _, c := range r.Clusters {
		a.console.In(c.Shown)
		m := &member{}
		members = append(members, m)
		if err := open(c, m); err != nil {
			return members, err
		}
		all[c.Cluster] = m.followed
		if m.in, err = m.followed.read(ctx, r); err != nil {
			return members, err
		}
	}
	return members, nil
}

func (a *app) newFollowing(ctx context.Context, o *runOptions, shared *session.Session, c *load.Cluster, st *store.Store) *following {
	return &following{
		ctx: ctx, app: a, o: o, shared: shared, c: c, st: st,
		locked: func(ctx context.Context, in *load.Input) (*reconcile.Locked, error) {
			return a.locked(ctx, &o.lock, in)
		},
		stands: map[store.Key]string{}, finished: map[store.Key]*reconcile.Result{}, failed: map[store.Key]bool{},
	}
}

// read builds the cluster.
func (f *following) read(ctx context.Context, r *load.Reading) (*load.Input, error) {
	f.r = r
	rendered, err := f.c.Result(ctx)
	if err = cmp.Or(f.err, err); err != nil {
		return nil, err
	}
	in, err := r.Input(ctx, f.c, rendered)
	if err == nil {
		in.Brought = f.failed
	}
	return in, err
}

func (f *following) endless(err error) error {
	return &exit.UsageError{Err: fmt.Errorf("--%s: %w", followFlag, err), Advice: "name checkouts of them with --source"}
}

// provide answers what a build needs. An error ends it, and is kept.
func (f *following) provide(needs []render.Need, known *manifest.Build) []render.Source {
	needs = slices.DeleteFunc(needs, func(n render.Need) bool {
		return n.Kind != sourcev1.HelmChartKind && !reconcile.Kinds().IsSource(n.Kind)
	})
	if len(needs) == 0 || f.err != nil {
		return nil
	}
	var arrived []render.Source
	arrived, f.err = f.answer(needs, known)
	f.fetched = append(f.fetched, arrived...)
	return arrived
}

func (f *following) answer(needs []render.Need, known *manifest.Build) ([]render.Source, error) {
	in, _, err := f.r.Known(f.ctx, f.c, &render.Result{Build: known})
	if err != nil {
		return nil, err
	}
	in.RenameStored(f.st)
	var arrived []render.Source
	var missing []*admission.Admitted
	for _, n := range needs {
		adm, err := in.Inventory.Find(n.Kind, n.Namespace, n.Name)
		if _, unknown := errors.AsType[*manifest.NotFoundError](err); err != nil && !unknown {
			continue // it is reported where it is judged
		}
		dir, err := f.stored(n, adm)
		if err != nil {
			return nil, err
		}
		if dir != "" {
			n.Dir = dir
			arrived = append(arrived, n.Source)
		} else if f.o.follow && adm != nil && n.Kind != sourcev1.ExternalArtifactKind {
			missing = append(missing, adm)
		}
	}
	fetched, err := f.fetch(in, missing)
	return append(arrived, fetched...), err
}

// stored takes what an artifacts directory holds: that of --source-dir of any source, that of the run of what a generator is
// made of, unless it is fetched. It returns the directory with the files, "" if there are none.
func (f *following) stored(n render.Need, adm *admission.Admitted) (string, error) {
	st, spec, key := f.dir, map[string]any(nil), store.NewKey(n.Kind, n.Namespace, n.Name)
	if adm != nil {
		key = load.StoredKey(adm.Object)
	}
	var archive string
	var err error
	if st != nil {
		if archive, err = reconcile.StoredArtifact(st, key, nil, f.app.now); err != nil {
			return "", fmt.Errorf("--source-dir %s: %w", f.o.fetch.sourceDir, err)
		}
		if archive != "" {
			f.stands[store.NewKey(n.Kind, n.Namespace, n.Name)] = archive
		}
	}
	if archive == "" && n.Generator && !f.o.follow {
		if adm != nil {
			spec = adm.Content["spec"].(map[string]any)
		}
		archive, err = reconcile.StoredArtifact(f.st, key, spec, f.app.now)
		if err != nil {
			f.app.worker.ReportStorage(finding.ArtifactAltered, err)
			return "", nil
		}
	}
	if archive == "" {
		return "", nil
	}
	parent, err := f.shared.Dir()
	if err != nil {
		return "", err
	}
	dir, err := reconcile.UnpackInto(f.ctx, archive, parent)
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.ToSlash(archive), err)
	}
	f.app.console.Debug(console.Subject{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}, "what an earlier run stored of it is what is rendered")
	return dir, nil
}

// fetch reconciles sources, with what they need themselves, and unpacks their artifacts. What could not be fetched has no directory.
func (f *following) fetch(in *load.Input, wanted []*admission.Admitted) ([]render.Source, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	ctx := f.ctx
	var targets []*admission.Admitted
	var names []string
	for _, adm := range wanted {
		targets = append(targets, in.SourcesOf(adm, func(*inventory.RejectedError) {})...)
		targets = append(targets, adm)
		names = append(names, adm.Object.String())
	}
	if f.rounds++; f.rounds > maxFollowRounds {
		return nil, f.endless(fmt.Errorf("what was fetched %d times leads to further sources: %s", maxFollowRounds, console.Few(names)))
	}
	if f.count += len(wanted); f.count > maxFollowed {
		return nil, f.endless(fmt.Errorf("more than %d sources would have to be fetched before rendering", maxFollowed))
	}
	f.app.console.Info(console.Subject{}, "fetched before rendering: "+console.Few(names))
	run, err := f.run(ctx, in)
	if err != nil {
		return nil, err
	}
	run.Targets = unique(targets)
	results, r, err := f.shared.Begin(f.app.worker.ReportsWaiting(ctx), run)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cannot fetch what is rendered: %w", context.Cause(ctx))
	}
	var fetched []render.Source
	for _, result := range results {
		if f.o.until == reconcile.Fetch {
			f.finished[inventory.KeyOf(result.Object.Object)] = result
		}
		if !slices.Contains(wanted, result.Object) {
			continue
		}
		obj := result.Object.Object
		source := render.Source{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}
		dir, err := r.Unpacked(ctx, result)
		if err != nil || result.Failure != nil {
			f.failed[inventory.KeyOf(obj)] = true
		}
		if err == nil {
			source.Dir = dir
		}
		fetched = append(fetched, source)
	}
	return fetched, nil
}

func unique(list []*admission.Admitted) []*admission.Admitted {
	var kept []*admission.Admitted
	for _, adm := range list {
		if !slices.Contains(kept, adm) {
			kept = append(kept, adm)
		}
	}
	return kept
}

// run stores what it fetches where the run does, or in a directory that goes with it if the run stores nothing.
func (f *following) run(ctx context.Context, in *load.Input) (session.Run, error) {
	o, st := f.o, f.st
	var err error
	if o.until == reconcile.Choose {
		st, err = f.shared.Temporary()
	} else {
		err = o.writable(st)
	}
	if err != nil {
		return session.Run{}, err
	}
	_ = st.Load() // what is wrong with it is reported when the run loads it
	directories := map[store.Key]string{}
	for _, text := range o.fetch.sources {
		s, dir, err := parseSource(text)
		if err != nil {
			return session.Run{}, err
		}
		for _, obj := range in.Replaceable() {
			if s.Matches(obj) {
				if directories[inventory.KeyOf(obj)], err = filepath.Abs(dir); err != nil {
					return session.Run{}, exit.Usagef("--source %s: %v", text, err)
				}
			}
		}
	}
	options := f.shared.Options()
	options.Directories, options.Until, options.Finished, options.List, options.Verify = directories, reconcile.Fetch, f.finished, false, false
	options.Locked, err = f.locked(ctx, in)
	return session.Run{Inventory: in.Inventory, Store: st, Options: options, Progress: silence{}}, err
}

// close ends the use of --source-dir.
func (f *following) close() {
	if f == nil || f.dir == nil {
		return
	}
	if err := f.dir.Close(); err != nil {
		f.app.console.Debug(console.Subject{}, err.Error())
	}
}

// silence ignores how a part of the run goes: the objects take part in the run itself.
type silence struct{}

func (silence) Started(*admission.Admitted)                         {}
func (silence) Transferred(*admission.Admitted, reconcile.Transfer) {}
func (silence) Decided(*admission.Admitted, string)                 {}
func (silence) Waiting(*admission.Admitted, bool)                   {}
func (silence) Finished(*reconcile.Result)                          {}
