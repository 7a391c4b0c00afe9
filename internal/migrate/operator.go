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

// The API groups of Flux 1.
const (
	operatorGroup = "helm.fluxcd.io"
	olderGroup    = "flux.weave.works"
)

const (
	// Manifests have no field for the intervals of the operator's flags.
	releaseInterval = "5m"
	sourceInterval  = "10m"

	operatorHistory = "10"
)

// operators migrates the HelmReleases of Flux 1, with a source object for each source of charts.
func (p *planner) operators() {
	made := map[string]string{} // names of sources, by namespace and content
	for _, t := range p.drafts {
		if g := group(t.head.APIVersion); t.head.Kind != releaseKind || g != operatorGroup && g != olderGroup || !p.asked(t) {
			continue
		}
		o := &operated{p: p, t: t, namespace: t.head.Namespace, made: made}
		if len(t.objects) > 0 {
			o.namespace = t.objects[0].Namespace
		}
		if p.in.Left[ID{releaseKind, o.namespace, t.head.Name}] {
			continue
		}
		back := t.snapshot()
		lost := len(p.result.Lost)
		if err := o.migrate(); err != nil {
			back()
			p.result.Lost = p.result.Lost[:lost]
			p.refuse(t.note("the HelmRelease of Flux 1 is not migrated: "+err.Error()), o.hint)
		}
	}
}

type operated struct {
	p         *planner
	t         *draft
	namespace string
	made      map[string]string
	spec      map[string]any
	hint      string
}

func (o *operated) migrate() error {
	if marked.Sealed(o.t.document.Root) {
		return fmt.Errorf("%s", sealedText)
	}
	if o.spec, _ = inside(o.t.content(), "spec").(map[string]any); o.spec == nil {
		return fmt.Errorf("its spec is not a mapping")
	}
	for _, applied := range o.t.objects {
		if applied.Name != o.t.head.Name || !o.t.asWritten(applied, "spec") {
			return fmt.Errorf("the applied object differs in spec: %s changes it, edit it there", applied.generator())
		}
	}
	if o.annotation("fluxcd.io/ignore") == "true" || o.annotation("flux.weave.works/ignore") == "true" {
		return fmt.Errorf("an annotation excludes it from being applied")
	}
	if v, ok := o.spec["values"]; ok && v != nil {
		if _, mapping := v.(map[string]any); !mapping {
			return fmt.Errorf("spec.values is not a mapping: the operator ignores it")
		}
	}
	o.automation()
	source, err := o.source()
	if err != nil {
		return err
	}
	from, err := o.valuesFrom()
	if err != nil {
		return err
	}
	release, err := o.releaseName()
	if err != nil {
		return err
	}
	name := o.sourceName(source)
	if err := o.rewrite(o.fields(source, name, release, from)); err != nil {
		return err
	}
	o.p.result.Operated = append(o.p.result.Operated, ID{releaseKind, o.namespace, o.t.head.Name})
	o.p.result.Changes = append(o.p.result.Changes, o.t.note(fmt.Sprintf("%s -> %s/v2, with %s %s", o.t.head.APIVersion, releaseGroup, source.kind, name)))
	return nil
}

func (o *operated) annotation(name string) string {
	return marked.Text(child(o.t.document.Root, "metadata", "annotations", name))
}

func (o *operated) lost(text string, at ...string) {
	o.p.result.Lost = append(o.p.result.Lost, o.t.note(text, child(o.t.document.Root, at...)))
}

// automation reports the annotations with which Flux 1 updates the images of the release: they stay, but no controller reads them.
func (o *operated) automation() {
	annotations := child(o.t.document.Root, "metadata", "annotations")
	if annotations == nil || annotations.Kind != yaml.MappingNode {
		return
	}
	var names []string
	for i := 0; i < len(annotations.Content); i += 2 {
		domain, _, _ := strings.Cut(annotations.Content[i].Value, "/")
		if slices.Contains([]string{"fluxcd.io", "filter.fluxcd.io", "flux.weave.works", "repository.fluxcd.io", "tag.fluxcd.io"}, domain) {
			names = append(names, annotations.Content[i].Value)
		}
	}
	if len(names) > 0 {
		o.lost("Flux 2 does not read "+strings.Join(names, ", ")+": an ImagePolicy selects the tag of an image, and a marker in the values sets its place", "metadata", "annotations")
	}
}

type chartSource struct {
	kind, url      string
	chart, version string
	ref            fields
	secret         string
}

var (
	commit   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}$`) })
	shortSum = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{7,39}$`) })
	release  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v?[0-9]+\.[0-9]+`) })
	scpLike  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^/].*)$`) })
)

func (o *operated) source() (*chartSource, error) {
	chart := o.spec["chart"]
	git, dir := str(chart, "git"), str(chart, "path")
	repository, name, version := str(chart, "repository"), str(chart, "name"), fmt.Sprint(cmp.Or(inside(chart, "version"), any("")))
	switch {
	case strings.Contains(git+dir+repository+name+version+str(chart, "ref"), "${"):
		return nil, fmt.Errorf("spec.chart depends on a variable: replace the variable by its value")
	case git != "" && dir != "":
		return o.gitSource(chart, git, dir)
	case repository == "" || name == "" || version == "":
		return nil, fmt.Errorf("spec.chart has neither git and path, nor repository, name and version")
	}
	if str(chart, "chartPullSecret", "name") != "" {
		o.lost("spec.chart.chartPullSecret is left out, as the operator never read it: a login is written as spec.secretRef of the HelmRepository", "spec", "chart", "chartPullSecret")
	}
	return &chartSource{kind: repositoryKind, url: strings.TrimRight(repository, "/"), chart: name, version: version}, nil
}

func (o *operated) gitSource(chart any, url, dir string) (*chartSource, error) {
	s := &chartSource{kind: "GitRepository", url: url, chart: "./" + strings.Trim(path.Clean("/"+dir), "/")}
	if m := scpLike().FindStringSubmatch(url); m != nil && !strings.Contains(url, "://") {
		s.url = "ssh://" + cmp.Or(m[1], "git@") + m[2] + "/" + m[3]
	}
	if !strings.HasPrefix(s.url, "https://") && !strings.HasPrefix(s.url, "http://") && !strings.HasPrefix(s.url, "ssh://") {
		return nil, fmt.Errorf("a GitRepository has no URL like %s: http, https or ssh", url)
	}
	ref := cmp.Or(str(chart, "ref"), "master")
	key := "branch"
	switch {
	case commit().MatchString(ref):
		key = "commit"
	case shortSum().MatchString(ref):
		o.hint = "write the whole commit into spec.chart.ref"
		return nil, fmt.Errorf("spec.chart.ref is an abbreviated commit, which a GitRepository does not accept")
	case strings.HasPrefix(ref, "refs/"):
		key = "name"
	case release().MatchString(ref):
		key = "tag"
	}
	s.ref = fields{scalar(key, ref)}
	if name := str(chart, "secretRef", "name"); name != "" {
		if ns := str(chart, "secretRef", "namespace"); ns != "" && ns != o.namespace {
			o.hint = "copy the Secret into the namespace of the release"
			return nil, fmt.Errorf("spec.chart.secretRef is in the namespace %s, but a GitRepository uses only Secrets of its own namespace", ns)
		}
		s.secret = name
	} else if strings.HasPrefix(s.url, "ssh://") {
		o.lost("the operator's own key is not known: name a Secret with identity and known_hosts in spec.secretRef of the GitRepository", "spec", "chart")
	}
	if inside(chart, "skipDepUpdate") == true {
		o.lost("spec.chart.skipDepUpdate is left out: source-controller always adds the dependencies that charts/ lacks", "spec", "chart", "skipDepUpdate")
	}
	return s, nil
}

func (o *operated) valuesFrom() ([][]edit.Field, error) {
	var list [][]edit.Field
	secrets, _ := o.spec["valueFileSecrets"].([]any)
	for _, s := range secrets {
		list = append(list, fields{scalar("kind", "Secret"), scalar("name", str(s, "name"))})
	}
	entries, _ := o.spec["valuesFrom"].([]any)
	for i, e := range entries {
		kind, ref := "ConfigMap", inside(e, "configMapKeyRef")
		if ref == nil {
			kind, ref = "Secret", inside(e, "secretKeyRef")
		}
		switch {
		case ref == nil && inside(e, "externalSourceRef") != nil:
			o.hint = "put the file into a ConfigMap"
			return nil, fmt.Errorf("spec.valuesFrom[%d].externalSourceRef: helm-controller reads no values from a URL", i)
		case ref == nil && inside(e, "chartFileRef") != nil:
			o.hint = "name the file in spec.chart.spec.valuesFiles, after the values.yaml of the chart: all spec.valuesFrom then override it"
			return nil, fmt.Errorf("spec.valuesFrom[%d].chartFileRef has another precedence in v2", i)
		case ref == nil:
			return nil, fmt.Errorf("spec.valuesFrom[%d] names no source", i)
		}
		if ns := str(ref, "namespace"); ns != "" && ns != o.namespace {
			o.hint = "copy it into the namespace of the release"
			return nil, fmt.Errorf("spec.valuesFrom[%d] is in the namespace %s, but helm-controller reads only the namespace of the release", i, ns)
		}
		from := fields{scalar("kind", kind), scalar("name", str(ref, "name"))}
		from.text("valuesKey", str(ref, "key"))
		from.yes("optional", inside(ref, "optional") == true)
		list = append(list, from)
	}
	return list, nil
}

// releaseName returns the release name of the operator if helm-controller would form another one, or "".
func (o *operated) releaseName() (string, error) {
	switch target := str(o.spec, "targetNamespace"); {
	case str(o.spec, "releaseName") != "":
		return "", nil
	case o.namespace == "":
		return "", fmt.Errorf("it has no namespace, and its release name begins with the namespace: set spec.releaseName")
	case target != "" && target != o.namespace && group(o.t.head.APIVersion) == operatorGroup:
		return o.namespace + "-" + target + "-" + o.t.head.Name, nil
	}
	return o.namespace + "-" + o.t.head.Name, nil
}

// sourceName finds or makes the source object, and returns its name.
func (o *operated) sourceName(s *chartSource) string {
	var key string
	if s.kind == repositoryKind {
		key = fmt.Sprint(o.namespace, s.kind, s.url)
		for _, other := range o.p.in.Objects {
			if other.Kind == s.kind && other.Namespace == o.namespace && strings.TrimRight(str(other.Content, "spec", "url"), "/") == s.url {
				return other.Name
			}
		}
	} else {
		key = fmt.Sprint(o.namespace, s.kind, s.url, s.ref, s.secret)
	}
	if name := o.made[key]; name != "" {
		return name
	}
	name := o.p.free(s.kind, o.namespace, s.url)
	o.made[key] = name
	o.p.names[ID{s.kind, o.namespace, name}] = true
	meta, spec := fields{scalar("name", name)}, fields{scalar("interval", sourceInterval), scalar("url", s.url)}
	meta.text("namespace", o.t.head.Namespace)
	spec.within("ref", s.ref...)
	if s.secret != "" {
		spec.within("secretRef", scalar("name", s.secret))
	}
	source := fields{scalar("apiVersion", sourceGroup+"/v1"), scalar("kind", s.kind)}
	source.within("metadata", meta...)
	source.within("spec", spec...)
	o.t.more = append(o.t.more, edit.Render(source, o.t.text))
	return name
}

// maxSourceName leaves room for the names of HelmCharts.
const maxSourceName = 50

// free returns a name for a source, made from its URL, that no object has.
func (p *planner) free(kind, namespace, url string) string {
	_, url, _ = strings.Cut(url, "://")
	if _, after, ok := strings.Cut(url, "@"); ok {
		url = after
	}
	base := strings.Trim(unfitName().ReplaceAllString(strings.ToLower(strings.TrimSuffix(url, ".git")), "-"), "-")
	base = cmp.Or(strings.Trim(base[max(0, len(base)-maxSourceName):], "-"), "charts")
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		if !p.names[ID{kind, namespace, name}] {
			return name
		}
	}
}

// goes returns the fields that v2 renames or does not have.
func goes() []string {
	return []string{
		"helmVersion", "valueFileSecrets", "valuesFrom", "timeout", "wait", "maxHistory", "resetValues", "forceUpgrade", "skipCRDs",
		"disableOpenAPIValidation", "rollback", "test",
	}
}

func (o *operated) rewrite(fields []edit.Field) error {
	changes := []change{func(d *edit.Document, root *yaml.Node) error {
		return d.Set(child(root, "apiVersion"), releaseGroup+"/v2")
	}}
	for _, name := range goes() {
		if _, ok := o.spec[name]; ok {
			changes = append(changes, drop(name, "spec"))
		}
	}
	return o.t.step(append(changes, drop("status"), func(d *edit.Document, root *yaml.Node) error {
		return d.ReplaceField(child(root, "spec"), "chart", fields)
	})...)
}

// fields returns the fields that replace spec.chart.
func (o *operated) fields(s *chartSource, source, releaseName string, from [][]edit.Field) []edit.Field {
	chart := fields{scalar("chart", s.chart)}
	if s.kind == repositoryKind {
		v := scalar("version", s.version)
		if n := child(o.t.document.Root, "spec", "chart", "version"); n != nil {
			v.Comment = n.LineComment
		}
		chart = append(chart, v)
	} else {
		chart = append(chart, scalar("reconcileStrategy", "Revision"))
	}
	chart.within("sourceRef", scalar("kind", s.kind), scalar("name", source))
	list := fields{scalar("interval", releaseInterval), {Key: "chart", Fields: fields{{Key: "spec", Fields: chart}}}}
	list.text("releaseName", releaseName)
	list.text("storageNamespace", str(o.spec, "targetNamespace"))
	list.seconds("timeout", o.spec["timeout"])
	list = append(list, literal("maxHistory", fmt.Sprint(cmp.Or(o.spec["maxHistory"], any(operatorHistory)))))
	if len(from) > 0 {
		list = append(list, edit.Field{Key: "valuesFrom", List: from})
	}
	if v := str(o.spec, "helmVersion"); v == "v2" {
		o.lost("spec.helmVersion v2 is left out: the release has to be converted to Helm 3 first", "spec", "helmVersion")
	}
	o.actions(&list)
	return list
}

// actions adds the settings of install, upgrade, rollback and test for which helm-controller acts as the operator does.
func (o *operated) actions(list *fields) {
	is := func(path ...string) bool { return inside(o.spec, path...) == true }
	wait, back, tests := is("wait"), is("rollback", "enable"), is("test", "enable")
	if _, set := o.spec["wait"]; !set {
		wait = back || tests
	}
	var install, upgrade, rollback, test fields
	install.yes("disableWait", !wait)
	if is("skipCRDs") {
		install.text("crds", "Skip")
	}
	install.yes("disableOpenAPIValidation", is("disableOpenAPIValidation"))
	install.within("remediation", literal("retries", "-1"))
	upgrade.yes("disableWait", !wait)
	upgrade.yes("force", is("forceUpgrade"))
	reset, set := o.spec["resetValues"]
	upgrade.yes("preserveValues", reset == false || !set && group(o.t.head.APIVersion) == olderGroup)
	if back {
		retries := "0"
		if is("rollback", "retry") {
			if retries = fmt.Sprint(cmp.Or(inside(o.spec, "rollback", "maxRetries"), any("5"))); retries == "0" {
				retries = "-1"
			}
		}
		upgrade.within("remediation", scalar("strategy", "rollback"), literal("retries", retries), literal("remediateLastFailure", "true"))
		for _, name := range []string{"recreate", "disableHooks", "force"} {
			rollback.yes(name, is("rollback", name))
		}
		rollback.yes("disableWait", !is("rollback", "wait"))
		rollback.seconds("timeout", inside(o.spec, "rollback", "timeout"))
	}
	if tests {
		test.yes("enable", true)
		test.yes("ignoreFailures", is("test", "ignoreFailures"))
		test.seconds("timeout", inside(o.spec, "test", "timeout"))
		if inside(o.spec, "test", "cleanup") != nil {
			o.lost("spec.test.cleanup is left out: it applies only to Helm 2", "spec", "test", "cleanup")
		}
	}
	list.within("install", install...)
	list.within("upgrade", upgrade...)
	list.within("rollback", rollback...)
	list.within("test", test...)
}
