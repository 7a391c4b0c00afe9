package cmd

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/bundle"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/lockfile"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/migration"
	"github.com/helmsrc/helmsrc/internal/store"
)

// redirection says which sources get another URL, and what is locked then.
type redirection struct {
	*mirroring

	names   []bundle.Name
	sources map[carried]*redirected
	warned  map[string]bool
}

// redirected is a source.
type redirected struct {
	url, refusal string
	locked       []lock.Entry // what its charts are locked to in the mirror
}

// redirect edits the sources in the manifests, and the lock file. It returns the exit code.
func (m *mirroring) redirect(ctx context.Context, names []bundle.Name) int {
	r := &redirection{m, names, map[carried]*redirected{}, map[string]bool{}}
	for _, in := range m.all.Inputs {
		r.cluster(in)
	}
	w := foresee.Work{Worker: &m.app.worker, Options: &m.o.Options}
	to := migrate.Mirror{Plain: m.options.plain, URL: func(o *migrate.Object) (url, refusal string) {
		s := r.source(o)
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
			for _, e := range r.source(o).locked {
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

// cluster finds out where the sources of a cluster are mirrored.
func (r *redirection) cluster(in *load.Input) {
	for _, obj := range in.Inventory.Objects() {
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			continue // it was reported, and nothing is edited then
		}
		entry := r.entries[carried{in, inventory.KeyOf(obj)}]
		switch obj.Kind {
		case sourcev1.OCIRepositoryKind:
			if entry == nil {
				r.stays(obj, "it is suspended, and not mirrored")
				continue
			}
			r.use(in, obj, obj, entry)
		case sourcev1.HelmChartKind:
			sources := in.SourcesOf(adm, func(*inventory.RejectedError) {})
			if len(sources) == 0 {
				continue
			}
			switch from := sources[len(sources)-1].Object; from.Kind {
			case sourcev1.HelmRepositoryKind:
				r.use(in, from, obj, entry)
			case sourcev1.GitRepositoryKind, sourcev1.BucketKind:
				r.stays(from, "charts are packaged of its files, and no registry can stand in for it")
			}
		}
	}
	for _, obj := range in.Inventory.Objects() {
		if obj.Kind == sourcev1.HelmRepositoryKind && r.sources[carried{in, inventory.KeyOf(obj)}] == nil {
			r.stays(obj, "nothing that is locked comes from it")
		}
	}
}

// stays says that a source is left as it is, once.
func (r *redirection) stays(obj *manifest.Object, why string) {
	line := fmt.Sprintf("%s stays: %s", obj, why)
	if !r.warned[line] {
		r.warned[line] = true
		r.app.console.Warn(line)
	}
}

// use records that an object gets its chart from a source.
func (r *redirection) use(in *load.Input, source, user *manifest.Object, entry *lock.Entry) {
	key := carried{in, inventory.KeyOf(source)}
	s := r.sources[key]
	if s == nil {
		s = &redirected{}
		r.sources[key] = s
	}
	if entry == nil {
		s.refusal = cmp.Or(s.refusal, fmt.Sprintf("%s gets its chart from it, and is not mirrored", user))
		return
	}
	repository := bundle.RepositoryOf(entry.SourceURL)
	s.url = r.options.to + "/" + bundle.Below(r.options.to, repository)
	if entry.Chart != "" {
		repository = path.Join(repository, entry.Chart)
	}
	i := slices.IndexFunc(r.names, func(n bundle.Name) bool {
		if entry.ManifestDigest != "" {
			return n.Repository == repository && n.Digest.String() == entry.ManifestDigest
		}
		return n.Repository == repository && n.Tag == strings.ReplaceAll(entry.Version, "+", "_")
	})
	if i < 0 {
		s.refusal = cmp.Or(s.refusal, fmt.Sprintf("the mirror has no repository %s with the chart of %s", repository, user))
		return
	}
	s.locked = append(s.locked, inMirror(*entry, r.options.to, s.url, r.names[i]))
}

// inMirror is an entry of what is called n in a mirror.
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

// source is what is known of a source, which may be nothing.
func (r *redirection) source(o *migrate.Object) redirected {
	i, _ := strconv.Atoi(o.Cluster) // the number of an input
	if s := r.sources[carried{r.all.Inputs[i], store.NewKey(o.Kind, o.Namespace, o.Name)}]; s != nil {
		return *s
	}
	return redirected{}
}
