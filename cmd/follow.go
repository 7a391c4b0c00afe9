package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
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
	app *app
	o   *runOptions
	r   *reading

	shared *session.Session

	st  *store.Store // of the run
	dir *store.Store // of --source-dir, nil for none

	locked func(context.Context, *input) (*reconcile.Locked, error) // what the sources are locked to

	rounds, count int // of what was fetched

	tried    map[store.Key]bool
	fetched  []render.Source
	lost     []render.Source
	stands   map[store.Key]string // of --source-dir, those that are nowhere in the input too
	finished map[store.Key]*reconcile.Result
	failed   map[store.Key]bool // fetched in vain
}

// readRunInput reads the input of a run. What is not in the checkout is taken from where an earlier run stored it or, with
// --follow-sources, fetched first.
func (a *app) readRunInput(ctx context.Context, o *runOptions, shared *session.Session, args []string, st *store.Store) (*input, *following, error) {
	r, err := a.read(ctx, &o.input, args, o.store.dir, true)
	if err != nil {
		return nil, nil, err
	}
	f := a.newFollowing(o, shared, r, st)
	if f.dir, err = a.openSourceDir(o); err != nil {
		return nil, f, err
	}
	in, err := f.read(ctx)
	if err != nil {
		return nil, f, err
	}
	in.brought = f.failed
	return in, f, nil
}

func (a *app) newFollowing(o *runOptions, shared *session.Session, r *reading, st *store.Store) *following {
	return &following{
		app: a, o: o, shared: shared, r: r, st: st,
		locked: func(ctx context.Context, in *input) (*reconcile.Locked, error) { return a.locked(ctx, &o.lock, in) },
		tried:  map[store.Key]bool{}, stands: map[store.Key]string{}, finished: map[store.Key]*reconcile.Result{}, failed: map[store.Key]bool{},
	}
}

func (f *following) read(ctx context.Context) (*input, error) {
	o := &f.o.input
	rendered, err := buildCluster(ctx, f.r.clusters[0])
	if err != nil {
		return nil, err
	}
	for len(rendered.Elsewhere) > 0 {
		more, err := f.provide(ctx, rendered)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if err := f.r.renderAgain(ctx, f.app, o, f.o.store.dir, f.fetched, f.lost); err != nil {
			return nil, err
		}
		if rendered, err = buildCluster(ctx, f.r.clusters[0]); err != nil {
			return nil, err
		}
	}
	return f.app.inputOfFirst(ctx, o, f.r, rendered)
}

func (f *following) endless(err error) error {
	return &usageError{err: fmt.Errorf("--%s: %w", followFlag, err), hint: "name checkouts of them with --source"}
}

// renderAgain renders what was read, with more sources.
func (r *reading) renderAgain(ctx context.Context, a *app, o *inputOptions, artifactsDir string, fetched, lost []render.Source) error {
	options, err := a.renderOptions(o)
	if err != nil {
		return err
	}
	options.Together, options.SkipDirs, options.Fetched, options.Unfetched = true, []string{artifactsDir}, fetched, lost
	r.renderer = render.New(ctx, r.files, options)
	r.clusters = r.renderer.Clusters()
	return nil
}

// provide gets what is not available. It reports whether there is anything new.
func (f *following) provide(ctx context.Context, rendered *render.Result) (bool, error) {
	var wanted []render.Elsewhere
	for _, e := range rendered.Elsewhere {
		if key := store.NewKey(e.Kind, e.Namespace, e.Name); !f.tried[key] && (e.Kind == sourcev1.HelmChartKind || reconcile.Kinds().IsSource(e.Kind)) {
			f.tried[key] = true
			e.Generator = slices.Contains(rendered.Elsewhere, render.Elsewhere{Source: e.Source, Generator: true})
			wanted = append(wanted, e)
		}
	}
	if len(wanted) == 0 {
		return false, nil
	}
	in, err := f.quietly(ctx, rendered)
	if err != nil {
		return false, err
	}
	before := len(f.fetched) + len(f.lost)
	var missing []*admission.Admitted
	for _, e := range wanted {
		adm, err := in.inventory.Find(e.Kind, e.Namespace, e.Name)
		if _, nowhere := errors.AsType[*manifest.NotFoundError](err); err != nil && !nowhere {
			continue // it is reported where it is judged
		}
		found, err := f.stored(ctx, e, adm)
		if err != nil {
			return false, err
		}
		if !found && f.o.follow && adm != nil && e.Kind != sourcev1.ExternalArtifactKind {
			missing = append(missing, adm)
		}
	}
	if err := f.fetch(ctx, in, missing); err != nil {
		return false, err
	}
	return len(f.fetched)+len(f.lost) > before, nil
}

// quietly makes an input of what was built that reports nothing: all of it is found again.
func (f *following) quietly(ctx context.Context, rendered *render.Result) (*input, error) {
	quiet := f.app.apart(&base{}, true)
	alone := *f.r
	alone.common = &common{dirs: f.r.common.dirs, noted: map[string]bool{}}
	in, err := quiet.inputOfBuild(ctx, &f.o.input, &alone, f.r.clusters[0].Name, rendered)
	if err == nil {
		in.renameStored(f.st)
	}
	return in, err
}

// stored takes what an artifacts directory holds: that of --source-dir of any source, that of the run of what a generator is
// made of, unless it is fetched.
func (f *following) stored(ctx context.Context, e render.Elsewhere, adm *admission.Admitted) (bool, error) {
	st, spec, key := f.dir, map[string]any(nil), store.NewKey(e.Kind, e.Namespace, e.Name)
	if adm != nil {
		key = storedKey(adm.Object)
	}
	var archive string
	var err error
	if st != nil {
		if archive, err = reconcile.StoredArtifact(st, key, nil, f.app.now); err != nil {
			return false, fmt.Errorf("--source-dir %s: %w", f.o.fetch.sourceDir, err)
		}
		if archive != "" {
			f.stands[store.NewKey(e.Kind, e.Namespace, e.Name)] = archive
		}
	}
	if archive == "" && e.Generator && !f.o.follow {
		if adm != nil {
			spec = adm.Content["spec"].(map[string]any)
		}
		archive, err = reconcile.StoredArtifact(f.st, key, spec, f.app.now)
		if err != nil {
			f.app.reportStorage(finding.ArtifactAltered, err)
			return false, nil
		}
	}
	if archive == "" {
		return false, nil
	}
	parent, err := f.shared.Dir()
	if err != nil {
		return false, err
	}
	dir, err := reconcile.UnpackInto(ctx, archive, parent)
	if err != nil {
		return false, fmt.Errorf("%s: %w", filepath.ToSlash(archive), err)
	}
	f.fetched = append(f.fetched, render.Source{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, Dir: dir})
	f.app.console.Debug(console.Subject{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}, "what an earlier run stored of it is what is rendered")
	return true, nil
}

// fetch reconciles sources, with what they need themselves, and unpacks their artifacts.
func (f *following) fetch(ctx context.Context, in *input, wanted []*admission.Admitted) error {
	if len(wanted) == 0 {
		return nil
	}
	var targets []*admission.Admitted
	var names []string
	for _, adm := range wanted {
		targets = append(targets, in.sourcesOf(adm, func(*inventory.RejectedError) {})...)
		targets = append(targets, adm)
		names = append(names, adm.Object.String())
	}
	if f.rounds++; f.rounds > maxFollowRounds {
		return f.endless(fmt.Errorf("what was fetched %d times leads to further sources: %s", maxFollowRounds, console.Few(names)))
	}
	if f.count += len(wanted); f.count > maxFollowed {
		return f.endless(fmt.Errorf("more than %d sources would have to be fetched before rendering", maxFollowed))
	}
	f.app.console.Info(console.Subject{}, "fetched before rendering: "+console.Few(names))
	run, err := f.run(ctx, in)
	if err != nil {
		return err
	}
	run.Targets = unique(targets)
	results, r, err := f.shared.Begin(f.app.reportsWaiting(ctx), run)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cannot fetch what is rendered: %w", context.Cause(ctx))
	}
	for _, result := range results {
		if f.o.until == reconcile.Fetch {
			f.finished[keyOfObject(result.Object.Object)] = result
		}
		if !slices.Contains(wanted, result.Object) {
			continue
		}
		obj := result.Object.Object
		source := render.Source{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}
		dir, err := r.Unpacked(ctx, result)
		if err != nil || result.Failure != nil {
			f.failed[keyOfObject(obj)] = true
		}
		if err != nil {
			f.lost = append(f.lost, source)
			continue
		}
		source.Dir = dir
		f.fetched = append(f.fetched, source)
	}
	return nil
}

func keyOfObject(obj *manifest.Object) store.Key {
	return store.NewKey(obj.Kind, obj.Namespace, obj.Name)
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
func (f *following) run(ctx context.Context, in *input) (session.Run, error) {
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
		for _, obj := range in.replaceable() {
			if s.matches(obj) {
				if directories[keyOfObject(obj)], err = filepath.Abs(dir); err != nil {
					return session.Run{}, usagef("--source %s: %v", text, err)
				}
			}
		}
	}
	options := f.shared.Options()
	options.Directories, options.Until, options.Finished, options.List, options.Verify = directories, reconcile.Fetch, f.finished, false, false
	options.Locked, err = f.locked(ctx, in)
	return session.Run{Inventory: in.inventory, Store: st, Options: options, Progress: silence{}}, err
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
