package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/bundle"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/lockfile"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/migration"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// mirrorOptions are the flags of mirror.
type mirrorOptions struct {
	run     runOptions
	to      string
	plain   bool
	dryRun  bool
	rewrite bool
	format  formatFlag
}

func newMirrorCommand(a *app) *cobra.Command {
	o := &mirrorOptions{format: recordFormat()}
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "mirror -f FILE... --to oci://REGISTRY/PREFIX [[KIND/][NAMESPACE/]NAME...]",
		Short:   "Copy the locked charts into a registry",
		Long: `Copy the charts and artifacts that ` + lock.FileName + ` records for the selected objects into a
registry, with the signatures, bills of materials and attestations that refer to them. With
--from, the whole bundle is copied and no source is contacted; manifests are then needed
only for --rewrite, and to check that the bundle contains everything they use.

Below the prefix, each repository is named after the host and path of its source:
https://stefanprodan.github.io/podinfo becomes PREFIX/stefanprodan.github.io/podinfo.
Artifacts from registries keep their manifests and digests; charts from HTTP repositories, Git
repositories and buckets are stored as 'helm push' stores them. Content that the
registry already has is not sent again, so an interrupted run can be continued.

--rewrite edits the manifests given with -f in place: HelmRepositories and OCIRepositories
get the URL of the mirror, HTTP repositories become OCI repositories, and references to
Secrets for the original source are removed. The lock file is updated to match. Every other
byte is kept.

The login for the registry is taken from 'helm registry login' or 'docker login'. Copied
artifacts are listed on stdout.

Exit codes: 0 everything is in the registry, 1 an object is not ready, the registry refused
a request, or a manifest could not be rewritten, 2 wrong usage or unreadable input, 3 a digest
or signature check failed, 4 the lock file is out of date, 5 only failures that may pass on a
retry, 130 interrupted.`,
		Example: `  helmsrc mirror -R -f clusters/ --to oci://registry.internal/mirror --dry-run
  helmsrc mirror -R -f clusters/ --to oci://registry.internal/mirror --rewrite
  helmsrc mirror --from charts.tar --to oci://registry.internal/mirror`,
	}
	flags := c.Flags()
	flags.StringVar(&o.to, "to", "", "oci:// `URL` of the registry, with the path below which everything is stored")
	flags.BoolVar(&o.plain, "plain-http", false, "connect to the registry over plain HTTP")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list what would be copied or edited, write nothing")
	flags.BoolVar(&o.rewrite, "rewrite", false, "edit the sources in the manifests, and the lock file, to use the registry")
	o.run.addCarried(flags)
	addFrom(&o.run.Lock, flags)
	o.format.add(a, c)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := o.check(a, args); err != nil {
			return exit.Usage, err
		}
		ctx, cancel := o.run.deadline(ctx)
		defer cancel()
		m := &mirroring{carrying: newCarrying(a, &o.run), options: o}
		defer m.close()
		return m.run(ctx, args)
	})
	return c
}

func (o *mirrorOptions) check(a *app, args []string) error {
	offline := o.run.Reconcile.Offline
	o.run.Lock.Locked = true
	o.to = strings.TrimRight(o.to, "/")
	if err := o.run.complete(a); err != nil {
		return err
	}
	given, _ := splitArguments(args, len(o.run.input.files) == 0) // an error is reported when they are read
	switch {
	case !strings.HasPrefix(o.to, "oci://"):
		return &exit.UsageError{Err: fmt.Errorf("--to %q: not a URL of a registry", auth.RedactText(o.to)), Advice: "--to oci://registry.internal/mirror"}
	case offline:
		return &exit.UsageError{Err: errors.New("--offline: mirror writes to a registry"), Advice: "with --from, no source is contacted"}
	case o.run.input.Untrusted:
		return exit.Usagef("--untrusted: mirror writes to the registry with your own login")
	case o.rewrite && slices.Contains(splitNames(o.run.input.files), "-"):
		return &exit.UsageError{Err: errors.New("stdin cannot be edited"), Advice: "name the files with -f"}
	case o.rewrite && len(given.selectors) > 0:
		return &exit.UsageError{Err: errors.New("--rewrite: other objects may use the same sources"), Advice: "leave out the names"}
	case o.rewrite && !o.manifests(args):
		return exit.Usagef("--rewrite: name the manifests to edit with -f")
	case !o.manifests(args) && o.run.report.Bills():
		return exit.Usagef("--report: name the manifests to report on with -f")
	case !o.manifests(args):
		return nil
	}
	return o.run.read(a, args)
}

// manifests reports whether manifests are given. A bundle can be copied without them.
func (o *mirrorOptions) manifests(args []string) bool {
	return o.run.Lock.From == nil || len(o.run.input.files)+len(args) > 0
}

// mirroring is one run of mirror over all clusters.
type mirroring struct {
	carrying

	options *mirrorOptions
	from    *bundle.Source
	// With --rewrite:
	sources map[carried]redirected
	stay    map[string]bool // warnings
}

func (m *mirroring) run(ctx context.Context, args []string) (code int, err error) {
	if names := m.o.Lock.From; names != nil {
		if m.from, err = bundle.Open(ctx, names); err != nil {
			err = session.NotFrom(err)
			return session.UsageCode(err), err
		}
		defer m.from.Close()
	}
	if m.options.manifests(args) {
		if code, err = m.gather(ctx); err != nil {
			return code, err
		}
		if code != exit.OK {
			return m.report(ctx, code, nil)
		}
	}
	if m.from == nil {
		if m.from, err = m.charts.Source(ctx); err != nil {
			return exit.Failed, err
		}
	}
	copies, code, err := m.copy(ctx)
	if err != nil {
		return exit.CodeOf(err), err
	}
	if m.options.rewrite && code == exit.OK {
		code = m.redirect(ctx)
	}
	m.app.console.Unite()
	return m.report(ctx, code, mirroredColumns().Print(m.app.env.Stdout, m.options.format.format, m.app.paper, copies))
}

// copy uploads the missing content, and returns the state of each copy and the exit code.
func (m *mirroring) copy(ctx context.Context) ([]*bundle.Copy, int, error) {
	o := m.o.Options
	o.Lock.From, o.Reconcile.Offline, o.CacheDir, o.Reconcile.Cache = nil, false, "", nil
	shared, err := m.app.worker.Open(ctx, &o)
	if err != nil {
		return nil, exit.Usage, err
	}
	defer shared.Close()
	to, err := shared.Registry(m.options.to, m.options.plain)
	if err != nil {
		return nil, exit.Usage, &exit.UsageError{Err: fmt.Errorf("--to: %w", err), Advice: strings.Join(finding.Hints(err), "; ")}
	}
	stop := m.app.console.StartRows()
	m.app.console.Expect(len(m.from.Names))
	copies := bundle.Mirror(ctx, m.from, bundle.MirrorOptions{
		To: m.options.to, Limit: m.o.Reconcile.Concurrency, Dry: m.options.dryRun, Remote: to.Remote, Retry: to.Retry,
		Started: func(n bundle.Name) { m.app.console.Started(console.Subject{Name: n.String()}) },
		Finished: func(c *bundle.Copy) {
			m.app.console.Finished(console.Subject{Name: c.Name.String()}, true, c.Err != nil)
		},
	})
	stop()
	counts, code := map[string]int{}, exit.OK
	for _, c := range copies {
		counts[c.State]++
		code = exit.Worst(code, m.say(c))
	}
	text := fmt.Sprintf("%d copied, %d moved, %d present, %d failed", counts[bundle.Copied], counts[bundle.Moved], counts[bundle.Present], counts[bundle.Failed])
	if m.options.dryRun {
		text += ": nothing was sent (--dry-run)"
	}
	m.app.console.Info(console.Subject{}, text)
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), exit.ErrInterrupted) {
		code = exit.Interrupted
	}
	return copies, code, nil
}

// say prints the state of a copy, and returns its exit code.
func (m *mirroring) say(c *bundle.Copy) int {
	if c.Err == nil {
		if c.State != bundle.Present {
			m.app.console.Debug(console.Subject{}, c.Reference+": "+c.State)
		}
		return exit.OK
	}
	err := fmt.Errorf("%s: %w", c.Name, c.Err)
	f := validate.New(nil, cmp.Or(finding.CodeOf(err), finding.Unexpected), err.Error(), "", manifest.Excerpt{})
	f.Fix = strings.Join(finding.Hints(err), "; ")
	m.app.console.Report(f)
	return session.CodeOf(&reconcile.Result{State: reconcile.Failed, Failure: status.AsFailure(c.Err)})
}

func mirroredColumns() *records.Columns[*bundle.Copy] {
	return &records.Columns[*bundle.Copy]{
		Header: []string{"REFERENCE", "DIGEST", "STATE"},
		Wide:   []string{"SOURCE"},
		Row: func(c *bundle.Copy) []string {
			return []string{c.Reference, digest.Short(c.Digest.String()), c.State, c.Name.String()}
		},
	}
}

// redirected is the new URL of a source, or the reason why it keeps its URL.
type redirected struct {
	url, refusal string
	locked       []lock.Entry // the entries of its charts in the mirror
}

// redirect edits the sources in the manifests, and the lock file. It returns the exit code.
func (m *mirroring) redirect(ctx context.Context) int {
	m.sources, m.stay = map[carried]redirected{}, map[string]bool{}
	for _, in := range m.all.Inputs {
		m.cluster(in)
	}
	w := foresee.Work{Worker: &m.app.worker, Options: &m.o.Options}
	to := migrate.Mirror{Plain: m.options.plain, URL: func(o *migrate.Object) (url, refusal string) {
		s := m.source(o)
		return s.url, s.refusal
	}}
	edits, result := migration.Redirect(ctx, w, m.all.Inputs, to, m.options.dryRun)
	sumEdits(m.app.console, edits, m.options.dryRun)
	for _, c := range edits.Changes {
		m.app.console.Info(console.Subject{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}, fmt.Sprintf("%s:%d: %s", c.File, c.Line, c.Text))
	}
	if !edits.Written {
		return edits.Code
	}
	_, err := lockfile.Change(ctx, m.o.Lock.Path(), func(l *lock.Lock) {
		for _, o := range result.Redirected {
			for _, e := range m.source(o).locked {
				l.Put(e)
			}
		}
	})
	if err != nil {
		m.app.console.Fail(err)
		return exit.Failed
	}
	return edits.Code
}

// cluster records where the sources of a cluster are mirrored.
func (m *mirroring) cluster(in *load.Input) {
	for _, obj := range in.Inventory.Objects() {
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			continue // it was reported, and no file is edited
		}
		entry := m.entries[carried{in, inventory.KeyOf(obj)}]
		switch obj.Kind {
		case sourcev1.OCIRepositoryKind:
			if entry == nil {
				m.stays(obj, "it is suspended, and not mirrored")
				continue
			}
			m.use(in, obj, obj, entry)
		case sourcev1.HelmChartKind:
			for _, from := range in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
				if from.Object.Kind == sourcev1.HelmRepositoryKind {
					m.use(in, from.Object, obj, entry)
				} else {
					m.stays(from.Object, "its charts are packaged from files, so a registry cannot replace it")
				}
			}
		}
	}
	for _, obj := range in.Inventory.Objects() {
		if _, used := m.sources[carried{in, inventory.KeyOf(obj)}]; !used && obj.Kind == sourcev1.HelmRepositoryKind {
			m.stays(obj, "no locked chart comes from it")
		}
	}
}

// stays warns, once, that a source keeps its URL.
func (m *mirroring) stays(obj *manifest.Object, why string) {
	line := fmt.Sprintf("%s is not changed: %s", obj.CalledText(), why)
	if !m.stay[line] {
		m.stay[line] = true
		m.app.console.Warn(line)
	}
}

// use records that user, an object, gets its chart from a source.
func (m *mirroring) use(in *load.Input, source, user *manifest.Object, entry *lock.Entry) {
	key := carried{in, inventory.KeyOf(source)}
	s := m.sources[key]
	defer func() { m.sources[key] = s }()
	if entry == nil {
		s.refusal = cmp.Or(s.refusal, fmt.Sprintf("%s gets its chart from it, and is not mirrored", user.CalledText()))
		return
	}
	repository := bundle.RepositoryOf(entry.SourceURL)
	s.url = m.options.to + "/" + bundle.Below(m.options.to, repository)
	if entry.Chart != "" {
		repository = path.Join(repository, entry.Chart)
	}
	i := slices.IndexFunc(m.from.Names, func(n bundle.Name) bool {
		if entry.ManifestDigest != "" {
			return n.Repository == repository && n.Digest.String() == entry.ManifestDigest
		}
		return n.Repository == repository && n.Tag == strings.ReplaceAll(entry.Version, "+", "_")
	})
	if i < 0 {
		s.refusal = cmp.Or(s.refusal, fmt.Sprintf("the mirror has no repository %s with the chart of %s", repository, user))
		return
	}
	s.locked = append(s.locked, inMirror(*entry, m.options.to, s.url, m.from.Names[i]))
}

// inMirror returns the lock entry of a chart after its copy to the mirror under the name n.
func inMirror(e lock.Entry, prefix, source string, n bundle.Name) lock.Entry {
	if e.Digest != "" { // of an archive, which is a layer now
		e.LayerDigest, e.Digest, e.Published = e.Digest, "", ""
		e.Tag = n.Tag
		if len(e.ValuesFiles) > 0 {
			e.Package = "" // has the time of the archive in it
		}
	}
	n.Repository = bundle.Below(prefix, n.Repository)
	e.SourceURL, e.URL, e.ManifestDigest = source, prefix+"/"+n.String(), n.Digest.String()
	return e
}

// source returns the new URL of a source. It is the zero value for a source that is not mirrored.
func (m *mirroring) source(o *migrate.Object) redirected {
	i, _ := strconv.Atoi(o.Cluster) // the number of an input
	return m.sources[carried{m.all.Inputs[i], store.NewKey(o.Kind, o.Namespace, o.Name)}]
}
