package migrate

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

const (
	sourceGroup  = "source.toolkit.fluxcd.io"
	releaseGroup = "helm.toolkit.fluxcd.io"

	repositoryKind = "HelmRepository"
	ociKind        = "OCIRepository"
	releaseKind    = "HelmRelease"
	chartKind      = "HelmChart"

	chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

func group(apiVersion string) string {
	g, _, _ := strings.Cut(apiVersion, "/")
	return g
}

// move is a release whose chart is to come from an OCIRepository.
type move struct {
	t          *draft
	release    *Object
	repository *draft
	of         *Object // the repository as it is applied
	url        string  // of the chart
	indexed    bool    // the repository is an HTTP server whose index leads to the registry
	back       func()
}

// sourceKey is equal for releases that share a source.
type sourceKey struct {
	repository                     *draft
	url, version, interval, verify string
}

// sources moves the charts of registries to OCIRepositories.
func (p *planner) sources() {
	var order []sourceKey
	groups := map[sourceKey][]*move{}
	for _, t := range p.drafts {
		m := p.moveOf(t)
		if m == nil {
			continue
		}
		spec := inside(m.release.Content, "spec", "chart", "spec")
		key := sourceKey{m.repository, m.url, str(spec, "version"), interval(m.release), fmt.Sprint(inside(spec, "verify"))}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], m)
	}
	count := map[*draft]int{}
	for _, key := range order {
		count[key.repository]++
	}
	touched := []*draft{}
	for _, key := range order {
		alone := count[key.repository] == 1 && p.users(key.repository) == len(groups[key])
		if p.moveGroup(key, groups[key], alone) && !slices.Contains(touched, key.repository) {
			touched = append(touched, key.repository)
		}
	}
	for _, t := range touched {
		if !p.used(t) {
			t.gone = true
			p.result.Changes = append(p.result.Changes, t.note("nothing refers to it any more: removed"))
		}
	}
}

func interval(release *Object) string {
	return cmp.Or(str(release.Content, "spec", "chart", "spec", "interval"), str(release.Content, "spec", "interval"))
}

// repositoryOf returns the HelmRepository of a release or chart, as it is applied, or nil.
func (p *planner) repositoryOf(o *Object) *Object {
	ref := inside(o.Content, "spec", "chart", "spec", "sourceRef")
	if o.Kind == chartKind {
		ref = inside(o.Content, "spec", "sourceRef")
	}
	if str(ref, "kind") != repositoryKind {
		return nil
	}
	id := ID{repositoryKind, cmp.Or(str(ref, "namespace"), o.Namespace), str(ref, "name")}
	i := slices.IndexFunc(p.in.Objects, func(r *Object) bool {
		return r.ID == id && r.Cluster == o.Cluster && group(r.APIVersion) == sourceGroup
	})
	if i < 0 {
		return nil
	}
	return p.in.Objects[i]
}

// moveOf returns the move of a release, or nil if its chart is not in a registry, or cannot be moved, which it
// reports.
func (p *planner) moveOf(t *draft) *move {
	if len(t.objects) == 0 || !p.asked(t) || t.objects[0].Kind != releaseKind || group(t.objects[0].APIVersion) != releaseGroup {
		return nil
	}
	release := t.objects[0]
	of := p.repositoryOf(release)
	if of == nil {
		return nil
	}
	m := &move{t: t, release: release, of: of, repository: p.draftOf(of)}
	chart := str(release.Content, "spec", "chart", "spec", "chart")
	switch url := str(of.Content, "spec", "url"); {
	case strings.HasPrefix(url, "oci://"):
		m.url = strings.TrimRight(url, "/") + "/" + chart
	case p.in.Registry != nil:
		m.url, m.indexed = p.in.Registry(release.ID), true
	}
	if m.url == "" {
		return nil
	}
	if reason, hint := p.unmovable(m); reason != "" {
		note := t.note("its chart stays in HelmRepository "+of.Namespace+"/"+of.Name+": "+reason, child(t.document.Root, "spec", "chart"))
		p.refuse(note, hint)
		return nil
	}
	return m
}

// unmovable returns the reason why a release cannot get its chart from an OCIRepository, "" if it can.
func (p *planner) unmovable(m *move) (reason, hint string) {
	spec := inside(m.release.Content, "spec", "chart", "spec")
	switch {
	case !p.in.Served(releaseGroup+"/v2", releaseKind):
		return "the Flux of the input has no spec.chartRef for OCIRepositories", "upgrade Flux to 2.3 or later first"
	case inside(spec, "valuesFiles") != nil || inside(spec, "valuesFile") != nil:
		return "with spec.chartRef, values files of the chart cannot be used", "copy their values to spec.values, or to a ConfigMap for spec.valuesFrom"
	case inside(m.of.Content, "spec", "suspend") == true:
		return "the repository is suspended, and a suspended OCIRepository gets no chart", ""
	case m.repository == nil:
		return "the repository is in " + m.of.Shown + ", " + m.of.Unfit, ""
	}
	for _, o := range m.t.objects {
		if reason := m.t.fixed(o, []string{"spec", "chart"}, []string{"spec", "interval"}); reason != "" {
			return reason, ""
		}
		if of := p.repositoryOf(o); of == nil || p.draftOf(of) != m.repository {
			return "in another cluster it has another source", ""
		}
	}
	for _, o := range m.repository.objects {
		if reason := m.repository.fixed(o, []string{"spec"}); reason != "" {
			return fmt.Sprintf("%s:%d: %s", m.repository.file.Name, m.repository.first, reason), ""
		}
	}
	if strings.Contains(m.url+str(spec, "version")+interval(m.release), "${") {
		return "it depends on a variable: replace the variable by its value, or migrate it by hand", ""
	}
	if name := str(m.of.Content, "spec", "secretRef", "name"); name != "" && (!m.indexed || m.passes()) {
		if kind := p.in.SecretType(m.of.Namespace, name); kind != "" && kind != "kubernetes.io/dockerconfigjson" {
			return fmt.Sprintf("Secret %s/%s is of type %s, but an OCIRepository accepts only kubernetes.io/dockerconfigjson", m.of.Namespace, name, kind),
				"create it again with kubectl create secret docker-registry"
		}
	}
	return "", ""
}

func (m *move) passes() bool { return inside(m.of.Content, "spec", "passCredentials") == true }

// moveGroup makes one OCIRepository for releases with the same chart. It reports errors; a release with an error does not
// change.
func (p *planner) moveGroup(key sourceKey, moves []*move, alone bool) bool {
	first := moves[0]
	name := p.sourceName(key, first, alone)
	var done []*move
	for _, m := range moves {
		m.back = m.t.snapshot()
		if err := m.t.step(func(d *edit.Document, root *yaml.Node) error { return refer(d, root, name) }); err != nil {
			p.refuse(m.t.note("its chart stays in HelmRepository "+m.of.Namespace+"/"+m.of.Name+": "+err.Error(), child(m.t.document.Root, "spec", "chart")), "")
			continue
		}
		done = append(done, m)
	}
	if len(done) == 0 {
		return false
	}
	text, err := p.sourceText(key, first, name)
	if err != nil {
		for _, m := range done {
			m.back()
			p.refuse(m.t.note(fmt.Sprintf("its chart stays in HelmRepository %s/%s: %s:%d: %v", m.of.Namespace, m.of.Name, m.repository.file.Name, m.repository.first, err)), "")
		}
		return false
	}
	key.repository.more = append(key.repository.more, text)
	p.names[ID{ociKind, first.of.Namespace, name}] = true
	to := ociKind + " " + first.of.Namespace + "/" + name
	note := key.repository.note(key.url + " as " + to)
	p.result.Changes = append(p.result.Changes, note)
	for _, m := range done {
		p.result.Changes = append(p.result.Changes, m.t.note("spec.chart -> spec.chartRef of "+to, child(m.t.document.Root, "spec", "chart")))
		p.lost(m)
	}
	return true
}

// refer replaces the chart template of a release by a reference to an OCIRepository.
func refer(d *edit.Document, root *yaml.Node, name string) error {
	chart := child(root, "spec", "chart")
	to := fields{scalar("kind", ociKind), scalar("name", name)}
	to.text("namespace", marked.Text(child(chart, "spec", "sourceRef", "namespace")))
	var moved []string
	if v := child(chart, "spec", "version"); v != nil && v.LineComment != "" {
		moved = append(moved, v.LineComment)
	}
	return d.ReplaceField(child(root, "spec"), "chart", fields{{Key: "chartRef", Fields: to}}, moved...)
}

func (p *planner) lost(m *move) {
	add := func(t *draft, text string, at *yaml.Node) {
		if n := t.note(text, at); !slices.Contains(p.result.Lost, n) {
			p.result.Lost = append(p.result.Lost, n)
		}
	}
	root := m.t.document.Root
	if n := child(root, "spec", "chart", "metadata"); n != nil {
		add(m.t, "spec.chart.metadata is left out: there is no HelmChart for its labels and annotations", n)
	}
	spec := child(m.repository.document.Root, "spec")
	if n := child(spec, "accessFrom"); n != nil {
		add(m.repository, "spec.accessFrom is left out: an OCIRepository does not have it, and Flux never used it", n)
	}
	if !m.indexed {
		return
	}
	for _, name := range []string{"secretRef", "certSecretRef"} {
		if n := child(spec, name); n != nil && !(name == "secretRef" && m.passes()) {
			add(m.repository, "spec."+name+" is left out: it is for the server of the index, not for the registry", n)
		}
	}
}

var unfitName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9-]+`) })

func (p *planner) sourceName(key sourceKey, m *move, alone bool) string {
	chart := strings.Trim(unfitName().ReplaceAllString(strings.ToLower(path.Base(key.url)), "-"), "-")
	names := []string{chart, m.release.Name, m.of.Name + "-" + chart}
	if alone {
		names = append([]string{m.of.Name}, names...)
	}
	for i := 2; ; i++ {
		for _, name := range names {
			if name != "" && !p.names[ID{ociKind, m.of.Namespace, name}] {
				return name
			}
		}
		names = []string{fmt.Sprintf("%s-%d", chart, i)}
	}
}

var exact = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
})

func (p *planner) sourceText(key sourceKey, m *move, name string) ([]byte, error) {
	changes := []change{
		func(d *edit.Document, root *yaml.Node) error { return p.rename(d, root, m, name) },
		func(d *edit.Document, root *yaml.Node) error {
			return d.InsertFields(child(root, "spec"), "url", p.sourceFields(key, m, child(root, "spec")))
		},
		drop("type", "spec"), drop("passCredentials", "spec"), drop("accessFrom", "spec"), drop("status"),
	}
	if m.indexed {
		changes = append(changes, drop("certSecretRef", "spec"), drop("timeout", "spec"), drop("provider", "spec"))
	}
	if m.indexed && !m.passes() {
		changes = append(changes, drop("secretRef", "spec"))
	}
	return edited(m.repository.document.Text(), changes...)
}

// rename sets the scalars that an OCIRepository has in common with a HelmRepository.
func (p *planner) rename(d *edit.Document, root *yaml.Node, m *move, name string) error {
	version := sourceGroup + "/v1"
	if !p.in.Served(version, ociKind) {
		version = sourceGroup + "/v1beta2"
	}
	for _, set := range []struct {
		at    []string
		value string
	}{
		{[]string{"apiVersion"}, version}, {[]string{"kind"}, ociKind}, {[]string{"metadata", "name"}, name},
		{[]string{"spec", "url"}, m.url}, {[]string{"spec", "interval"}, interval(m.release)},
	} {
		n := child(root, set.at...)
		if n == nil && set.at[len(set.at)-1] == "interval" {
			continue
		}
		if n == nil {
			return fmt.Errorf("there is no field %s", strings.Join(set.at, "."))
		}
		if err := d.Set(n, set.value); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) sourceFields(key sourceKey, m *move, spec *yaml.Node) []edit.Field {
	ref := scalar("semver", cmp.Or(key.version, "*"))
	if exact().MatchString(key.version) {
		ref = scalar("tag", strings.ReplaceAll(key.version, "+", "_"))
	}
	if v := child(m.t.document.Root, "spec", "chart", "spec", "version"); v != nil {
		ref.Comment = v.LineComment
	}
	var list fields
	if child(spec, "interval") == nil {
		list = fields{scalar("interval", key.interval)}
	}
	list.within("ref", ref)
	list.within("layerSelector", scalar("mediaType", chartMediaType), scalar("operation", "copy"))
	if verify, ok := inside(m.release.Content, "spec", "chart", "spec", "verify").(map[string]any); ok {
		check := fields{scalar("provider", cmp.Or(str(verify, "provider"), "cosign"))}
		if name := str(verify, "secretRef", "name"); name != "" {
			check.within("secretRef", scalar("name", name))
		}
		list.within("verify", check...)
	}
	return list
}

// users counts the releases and charts that get a chart from a repository.
func (p *planner) users(repository *draft) int {
	seen := map[*draft]bool{}
	loose := 0
	for _, o := range p.in.Objects {
		if of := p.repositoryOf(o); of != nil && p.draftOf(of) == repository {
			if t := p.draftOf(o); t != nil {
				seen[t] = true
			} else {
				loose++
			}
		}
	}
	return len(seen) + loose
}

// used reports whether any object still refers to a repository: releases that stay, charts, health checks, alerts.
func (p *planner) used(repository *draft) bool {
	for _, o := range p.in.Objects {
		if of := p.repositoryOf(o); of == nil || p.draftOf(of) != repository {
			continue
		}
		t := p.draftOf(o)
		if t == nil || o.Kind == chartKind || !moved(t) {
			return true
		}
	}
	return slices.ContainsFunc(p.drafts, func(t *draft) bool {
		if t == repository || !strings.Contains(string(t.text), repositoryKind) {
			return false
		}
		f := edit.Parse(t.text)
		return slices.ContainsFunc(f.Documents(), func(d *edit.Document) bool {
			return slices.ContainsFunc(repository.objects, func(o *Object) bool { return mentions(d.Root, o.Name) })
		})
	})
}

func moved(t *draft) bool {
	f := edit.Parse(t.text)
	return len(f.Documents()) == 1 && child(f.Documents()[0].Root, "spec", "chartRef") != nil
}

func mentions(root *yaml.Node, name string) (found bool) {
	edit.Each(root, func(n *yaml.Node) {
		found = found || marked.Text(child(n, "kind")) == repositoryKind && marked.Text(child(n, "name")) == name
	})
	return found
}
