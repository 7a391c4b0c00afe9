package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
)

const (
	// maxFollowRounds is the limit of the rounds in which fetched manifests lead to further sources.
	maxFollowRounds = 10
	// maxFollowed is the limit of the sources that are fetched before rendering: the manifests in them may name any number.
	maxFollowed = 500
)

// A Following provides the sources that a build needs. It ends with the run.
type Following struct {
	ctx context.Context // of the run
	w   *Worker
	o   *Options
	r   *load.Reading
	c   *load.Cluster

	shared *Session

	Store *store.Store // of the run
	dir   *store.Store // replaces sources, or nil

	Locked func(context.Context, *load.Input) (*reconcile.Locked, error) // the lock of the sources

	rounds, count int // of fetches

	Fetched  []render.Source
	stands   map[store.Key]string // from dir, also for objects that are not in the input
	Finished map[store.Key]*reconcile.Result
	failed   map[store.Key]bool // could not be fetched
	err      error              // ended the build
}

// followings are the providers of sources, by cluster.
type followings map[*render.Cluster]*Following

func (all followings) provide(c *render.Cluster, needs []render.Need, known *manifest.Build) []render.Source {
	if f := all[c]; f != nil {
		return f.provide(needs, known)
	}
	return nil
}

// A Member is one cluster of a run.
type Member struct {
	In       *load.Input
	Store    *store.Store
	Followed *Following
	Options  reconcile.Options
	Targets  []*admission.Admitted // set once they are reconciled
}

// closeMember closes the resources of a cluster, except the artifacts directory of the command.
func (w *Worker) closeMember(m *Member, root *store.Store) {
	m.Followed.close()
	if m.Store == nil || m.Store == root {
		return
	}
	if err := m.Store.Close(); err != nil {
		w.Console.Debug(console.Subject{}, err.Error())
	}
}

// Members reads the input of a run, one for each cluster. Sources outside of the checkout are taken from stored artifacts or,
// if the options allow it, fetched first. The caller must call the returned function, also after an error.
func (s *Session) Members(ctx context.Context, w *Worker, root *store.Store) ([]*Member, func(), error) {
	members, err := s.Follow(ctx, w, func(c *load.Cluster, m *Member) (err error) {
		if m.Store, err = w.ArtifactsOf(c.Shown, &s.o.Store, root); err == nil {
			m.Followed = s.Following(ctx, w, c, m.Store)
			m.Followed.dir, err = w.openSourceDir(s.o, c.Shown)
		}
		return err
	})
	return members, func() {
		for _, m := range members {
			w.closeMember(m, root)
		}
	}, err
}

// Replace finds the replacements of sources in all clusters, and sets the options of each cluster.
func (s *Session) Replace(members []*Member) error {
	var inputs []*load.Input
	stands := map[*load.Input]map[store.Key]string{}
	for _, m := range members {
		inputs = append(inputs, m.In)
		stands[m.In] = m.Followed.stands
	}
	replaced, err := s.w.Replace(s.o, inputs, stands)
	for _, m := range members {
		m.Options = s.Options()
		m.Options.Directories, m.Options.Finished = replaced[m.In], m.Followed.Finished
		m.Options.Cluster = m.In.Called
		m.Options.AdvertisedAddress = s.o.Store.AddressOf(m.In.Cluster)
	}
	return err
}

// Follow reads the clusters of a run. It returns the members that open has seen also with an error.
func (s *Session) Follow(ctx context.Context, w *Worker, open func(*load.Cluster, *Member) error) (members []*Member, err error) {
	all := followings{}
	r, err := w.Choose(ctx, s.o.Load, all.provide)
	if err != nil {
		return nil, err
	}
	defer w.Console.In("")
	for _, c := range r.Clusters {
		w.Console.In(c.Shown)
		m := &Member{}
		members = append(members, m)
		if err := open(c, m); err != nil {
			return members, err
		}
		all[c.Cluster] = m.Followed
		if m.In, err = m.Followed.read(ctx, r); err != nil {
			return members, err
		}
	}
	return members, nil
}

// Following returns the provider of sources for a cluster, which stores them in st.
func (s *Session) Following(ctx context.Context, w *Worker, c *load.Cluster, st *store.Store) *Following {
	return &Following{
		ctx: ctx, w: w, o: s.o, shared: s, c: c, Store: st, Locked: s.Locked,
		stands: map[store.Key]string{}, Finished: map[store.Key]*reconcile.Result{}, failed: map[store.Key]bool{},
	}
}

// read builds the cluster.
func (f *Following) read(ctx context.Context, r *load.Reading) (*load.Input, error) {
	f.r = r
	rendered, err := f.c.Result(ctx)
	if err = cmp.Or(f.err, err); err != nil {
		return nil, err
	}
	in, err := r.Input(ctx, f.c, rendered)
	if err == nil {
		in.Required = f.failed
	}
	return in, err
}

func (f *Following) endless(err error) error {
	return &exit.UsageError{Option: "follow-sources", Err: err, Advice: finding.CheckoutsOfThem}
}

// provide returns the sources that a build needs and that are available. An error ends the build, and is kept.
func (f *Following) provide(needs []render.Need, known *manifest.Build) []render.Source {
	needs = slices.DeleteFunc(needs, func(n render.Need) bool {
		return n.Kind != sourcev1.HelmChartKind && !reconcile.Kinds().IsSource(n.Kind)
	})
	if len(needs) == 0 || f.err != nil {
		return nil
	}
	var arrived []render.Source
	arrived, f.err = f.answer(needs, known)
	f.Fetched = append(f.Fetched, arrived...)
	return arrived
}

func (f *Following) answer(needs []render.Need, known *manifest.Build) ([]render.Source, error) {
	in, _, err := f.r.Known(f.ctx, f.c, &render.Result{Build: known})
	if err != nil {
		return nil, err
	}
	load.RenameStored(in.Inventory, f.Store)
	var arrived []render.Source
	var missing []*admission.Admitted
	for _, n := range needs {
		adm, err := in.Inventory.Find(n.Kind, n.Namespace, n.Name)
		if _, unknown := errors.AsType[*manifest.NotFoundError](err); err != nil && !unknown {
			continue // it is reported by validation
		}
		dir, err := f.stored(n, adm)
		if err != nil {
			return nil, err
		}
		if dir != "" {
			n.Dir = dir
			arrived = append(arrived, n.Source)
		} else if f.o.Follow && adm != nil && n.Kind != sourcev1.ExternalArtifactKind {
			missing = append(missing, adm)
		}
	}
	fetched, err := f.fetch(in, missing)
	return append(arrived, fetched...), err
}

// stored returns the directory of a stored artifact, or "": from the source directory for any source, and from the run's own
// directory for sources of generators, unless they are fetched.
func (f *Following) stored(n render.Need, adm *admission.Admitted) (string, error) {
	st, spec, key := f.dir, map[string]any(nil), store.NewKey(n.Kind, n.Namespace, n.Name)
	if adm != nil {
		key = load.StoredKey(adm.Object)
	}
	var archive string
	var err error
	if st != nil {
		if archive, err = reconcile.StoredArtifact(st, key, nil, f.w.Edges.Now); err != nil {
			return "", &exit.OptionError{Option: "source-dir", Value: f.o.SourceDir, Err: err}
		}
		if archive != "" {
			f.stands[store.NewKey(n.Kind, n.Namespace, n.Name)] = archive
		}
	}
	if archive == "" && n.Generator && !f.o.Follow {
		if adm != nil {
			spec = adm.Content["spec"].(map[string]any)
		}
		archive, err = reconcile.StoredArtifact(f.Store, key, spec, f.w.Edges.Now)
		if err != nil {
			f.w.ReportStorage(finding.ArtifactAltered, err)
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
	f.w.Console.Debug(console.Subject{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}, "the artifact of an earlier run is rendered")
	return dir, nil
}

// fetch reconciles sources and their dependencies, and unpacks their artifacts. A source that failed has no directory.
func (f *Following) fetch(in *load.Input, wanted []*admission.Admitted) ([]render.Source, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	ctx := f.ctx
	var objects []*manifest.Object
	var names []string
	for _, adm := range wanted {
		objects, names = append(objects, adm.Object), append(names, adm.Object.String())
	}
	if f.rounds++; f.rounds > maxFollowRounds {
		return nil, f.endless(fmt.Errorf("after %d rounds, the fetched sources need further sources: %s", maxFollowRounds, console.Few(names)))
	}
	if f.count += len(wanted); f.count > maxFollowed {
		return nil, f.endless(fmt.Errorf("more than %d sources would have to be fetched before rendering", maxFollowed))
	}
	f.w.Console.Info(console.Subject{}, "fetched before rendering: "+console.Few(names))
	run, err := f.run(ctx, in)
	if err != nil {
		return nil, err
	}
	run.Targets = in.WithSources(objects...)
	results, r, err := f.shared.Begin(f.w.ReportsWaiting(ctx), run)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cannot fetch the sources to render: %w", context.Cause(ctx))
	}
	var fetched []render.Source
	for _, result := range results {
		if f.o.Reconcile.Until == reconcile.Fetch {
			f.Finished[inventory.KeyOf(result.Object.Object)] = result
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

// Has reports whether a file belongs to a fetched source.
func (f *Following) Has(file string) bool {
	return f != nil && slices.ContainsFunc(f.Fetched, func(s render.Source) bool {
		return strings.HasPrefix(file, s.Kind+"/"+s.Namespace+"/"+s.Name+"/")
	})
}

// run returns a run that stores into the artifacts directory, or into a temporary one if the command stores nothing.
func (f *Following) run(ctx context.Context, in *load.Input) (Run, error) {
	o, st := f.o, f.Store
	var err error
	if o.Reconcile.Until == reconcile.Choose {
		st, err = f.shared.Temporary()
	} else {
		err = Writable(st)
	}
	if err != nil {
		return Run{}, err
	}
	_ = st.Load() // its errors are reported when the run loads it
	directories := Replaced{}
	for _, source := range o.Load.Sources {
		for _, obj := range in.Replaceable() {
			if source.Matches(obj) {
				dir, err := filepath.Abs(source.Dir)
				if err != nil {
					return Run{}, sourceError(source, err, "")
				}
				directories[inventory.KeyOf(obj)] = reconcile.StandIn{Path: dir}
			}
		}
	}
	options := f.shared.Options()
	options.Directories, options.Until, options.Finished, options.List, options.Verify = directories, reconcile.Fetch, f.Finished, false, false
	options.Locked, err = f.Locked(ctx, in)
	return Run{Inventory: in.Inventory, Store: st, Options: options, Progress: Silence{}}, err
}

// close closes the directory that replaces sources.
func (f *Following) close() {
	if f == nil || f.dir == nil {
		return
	}
	if err := f.dir.Close(); err != nil {
		f.w.Console.Debug(console.Subject{}, err.Error())
	}
}

// Silence ignores the progress of a partial run: the objects take part in the run itself.
type Silence struct{}

func (Silence) Started(*admission.Admitted)                     {}
func (Silence) Transferred(*admission.Admitted, fetch.Progress) {}
func (Silence) Decided(*admission.Admitted, string)             {}
func (Silence) Waiting(*admission.Admitted, bool)               {}
func (Silence) Finished(*reconcile.Result)                      {}
