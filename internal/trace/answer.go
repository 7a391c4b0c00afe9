// Package trace explains the origins of a cluster's objects: Kustomizations, releases, charts and sources, and how a version was
// chosen. It reads the results of a run, and builds nothing.
package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Answer holds the origins of an object. Its fields are part of the contract.
type Answer struct {
	Cluster    string      `json:"cluster,omitempty"`
	Object     string      `json:"object"`
	File       string      `json:"file"`
	BuiltBy    string      `json:"builtBy,omitempty"`
	Patches    []whyPatch  `json:"patches,omitempty"`
	Decided    []decided   `json:"decided,omitempty"`
	Sources    []whySource `json:"sources,omitempty"`
	Version    *whyVersion `json:"version,omitempty"`
	Problem    string      `json:"problem,omitempty"`
	Hint       string      `json:"hint,omitempty"`
	Dependents []dependent `json:"dependents,omitempty"`

	published *manifest.Object // object whose versions are listed
}

// whyPatch is a patch that the object was built with.
type whyPatch struct {
	File string `json:"file"`
	By   string `json:"by"`
}

// decided is a field whose value differs from that in the file.
type decided struct {
	Field string `json:"field"`
	At    string `json:"at"`
	By    string `json:"by"`
}

type whySource struct {
	Object       string `json:"object"`
	File         string `json:"file"`
	URL          string `json:"url,omitempty"`
	Login        string `json:"login,omitempty"`
	Verification string `json:"verification,omitempty"`

	object *manifest.Object
}

type whyVersion struct {
	Chart      string         `json:"chart"`
	Constraint string         `json:"constraint"`
	Published  int            `json:"published"`
	Chosen     string         `json:"chosen"`
	Candidates []whyCandidate `json:"candidates"`
}

type whyCandidate struct {
	Version string `json:"version"`
	Because string `json:"because"`
}

type dependent struct {
	Object string `json:"object"`
	File   string `json:"file"`
	How    string `json:"how"`
}

// A Tracer uses the shown names of its console, which hide secret names.
type Tracer struct{ Console *console.Console }

// Answer returns the origins of an object of a cluster, with the results of a run.
func (t Tracer) Answer(in *load.Input, obj *manifest.Object, results []*reconcile.Result) *Answer {
	hide := obj.ConcealText
	w := &Answer{Cluster: in.Cluster, Object: t.called(obj), File: positionOf(obj), BuiltBy: hide(obj.Built)}
	made := obj
	if obj.Origin != nil {
		made = obj.Origin
	}
	patches := in.Rendered.Patches(made)
	w.Decided = decidedFields(obj, patches)
	for _, p := range patches {
		w.Patches = append(w.Patches, whyPatch{hide(p.File), hide(p.By)})
	}
	adm, err := in.Inventory.Admit(obj)
	if err != nil {
		w.Problem = hide(err.Error())
		return w
	}
	chain := in.SourcesOf(adm, func(*inventory.RejectedError) {})
	slices.Reverse(chain)
	chain = append([]*admission.Admitted{adm}, chain...)
	for _, part := range chain {
		w.Sources = append(w.Sources, t.newSource(part))
		for _, r := range results {
			if r.Object.Object != part.Object || r.Cluster != in.Cluster {
				continue
			}
			published := r.Published
			if r.Refused != nil && len(r.Refused.Versions) > 0 {
				published = r.Refused
			}
			if published != nil && w.Version == nil {
				w.Version, w.published = newWhyVersion(r, published), r.Object.Object
			}
			if r.Failure != nil && w.Problem == "" {
				w.Problem = r.Object.Object.ConcealText(auth.RedactText(r.Failure.Message))
				if f, ok := r.FailureFinding(); ok {
					w.Hint = r.Object.Object.ConcealText(auth.RedactText(f.Fix))
				}
			}
		}
	}
	w.Dependents = t.dependentsOf(in, obj)
	return w
}

func (t Tracer) called(obj *manifest.Object) string {
	return t.Console.Called(console.ObjectSubject(obj)).String()
}

// positionOf returns the file and line of an object, or of the object that it was made from.
func positionOf(obj *manifest.Object) string {
	if obj.Origin != nil {
		return obj.Position().String() + " (made of " + obj.Origin.String() + ")"
	}
	return obj.Pos.String()
}

// fieldsThatDecide returns the fields that decide which chart is fetched.
func fieldsThatDecide() [][]any {
	return [][]any{
		{"metadata", "name"}, {"metadata", "namespace"}, {"spec", "url"}, {"spec", "type"}, {"spec", "chart"}, {"spec", "version"},
		{"spec", "chart", "spec", "chart"}, {"spec", "chart", "spec", "version"}, {"spec", "chart", "spec", "sourceRef", "name"},
		{"spec", "sourceRef", "name"}, {"spec", "chartRef", "name"}, {"spec", "ref", "tag"}, {"spec", "ref", "semver"}, {"spec", "ref", "digest"},
		{"spec", "secretRef", "name"}, {"spec", "suspend"},
	}
}

// decidedFields returns the fields whose value in the file was replaced by a variable, a kustomization or a template.
func decidedFields(obj *manifest.Object, patches []render.Patch) []decided {
	var list []decided
	for _, path := range fieldsThatDecide() {
		value, ok := manifest.ValueAt(obj.Content, path).(string)
		if !ok {
			continue
		}
		e := obj.Written(path...)
		key := fmt.Sprint(path[len(path)-1])
		d := decided{Field: manifest.Dotted(path...), At: e.Pos.String()}
		another := obj.Built != "" && e.Marked != "" && strings.Contains(e.Marked, key) && !strings.Contains(e.Marked, value)
		names := manifest.Variables(e.Marked)
		switch by := lastPatch(patches, path); {
		case by != "" && (another || len(names) > 0):
			d.By = "the patch " + obj.ConcealText(by)
		case len(names) > 0:
			d.By = "the variable " + strings.Join(names, ", ")
		case another && obj.Origin != nil:
			d.By = obj.Origin.String()
		case another:
			d.By = "a kustomization, which sets another value"
		default:
			continue
		}
		list = append(list, d)
	}
	return list
}

// lastPatch returns the last patch that sets a field, or "".
func lastPatch(patches []render.Patch, path []any) string {
	by := ""
	for _, p := range patches {
		if p.Sets(path...) != nil {
			by = p.By
		}
	}
	return by
}

func (t Tracer) newSource(adm *admission.Admitted) whySource {
	obj := adm.Object
	s := whySource{Object: t.called(obj), File: positionOf(obj), object: obj}
	if url, ok := manifest.ValueAt(adm.Content, []any{"spec", "url"}).(string); ok {
		s.URL = obj.ConcealText(auth.RedactText(url))
	}
	s.Login, s.Verification = loginOf(adm), verificationOf(adm)
	return s
}

// loginOf describes the login to a source.
func loginOf(adm *admission.Admitted) string {
	text := func(path ...any) string {
		s, _ := manifest.ValueAt(adm.Content, append([]any{"spec"}, path...)).(string)
		return adm.Object.ConcealText(s)
	}
	if !reconcile.Kinds().IsSource(adm.Object.Kind) {
		return ""
	}
	provider, namespace := text("provider"), adm.Object.Namespace
	switch {
	case text("secretRef", "name") != "":
		return fmt.Sprintf("the Secret %s/%s, which spec.secretRef names", namespace, text("secretRef", "name"))
	case text("serviceAccountName") != "":
		return fmt.Sprintf("the image pull secrets of ServiceAccount %s/%s", namespace, text("serviceAccountName"))
	case provider != "" && provider != "generic":
		return "the identity of this machine at " + provider
	case adm.Object.Kind == sourcev1.OCIRepositoryKind || text("type") == sourcev1.HelmRepositoryTypeOCI:
		return "none in the manifest: the login of docker or helm on this machine, if there is one for the registry"
	}
	return "none"
}

// verificationOf describes how the signatures of a source are verified.
func verificationOf(adm *admission.Admitted) string {
	spec := manifest.At[map[string]any](adm.Content, "spec", "verify")
	if spec == nil {
		if adm.Object.Kind == sourcev1.HelmChartKind || adm.Object.Kind == sourcev1.OCIRepositoryKind {
			return "none (no spec.verify)"
		}
		return ""
	}
	by, _ := spec["provider"].(string)
	text := cmp.Or(by, "PGP keys")
	if ref, ok := spec["secretRef"].(map[string]any); ok {
		text += fmt.Sprintf(" with the keys in Secret %s/%v", adm.Object.Namespace, ref["name"])
	} else {
		text += ", keyless"
	}
	return adm.Object.ConcealText(text)
}

// The numbers of newer and older versions that are listed around the chosen version.
const (
	whyNewer = 5
	whyOlder = 3
)

func newWhyVersion(r *reconcile.Result, p *reconcile.Published) *whyVersion {
	hide, veil := r.Object.Object.ConcealText, r.Object.Object.VeilField
	v := &whyVersion{Chart: veil(p.Chart), Constraint: veil(p.Constraint), Published: len(p.Versions), Chosen: veil(p.Wanted), Candidates: []whyCandidate{}}
	chosen := slices.IndexFunc(p.Versions, func(c resolve.Candidate) bool { return c.Version == p.Wanted })
	from, to := max(chosen-whyNewer, 0), min(max(chosen, 0)+whyOlder+1, len(p.Versions))
	for i, c := range p.Versions[from:to] {
		v.Candidates = append(v.Candidates, whyCandidate{hide(c.Version), because(p, c, from+i, chosen)})
	}
	return v
}

// because returns the reason why a version is chosen or not.
func because(p *reconcile.Published, c resolve.Candidate, i, chosen int) string {
	text := "does not match the constraint"
	switch {
	case i == chosen:
		text = "chosen: the newest that matches the constraint"
		if p.Exact {
			text = "chosen: pinned"
		}
	case p.Exact:
		text = "not the pinned version"
	case c.Removed:
		text = "removed by its publisher"
	case p.Takes(c):
		text = "older than the chosen one"
	case resolve.IsPrerelease(c.Version):
		text = "a pre-release, which the constraint excludes"
	}
	if c.Deprecated {
		text += "; deprecated"
	}
	return text
}

// dependentsOf returns the objects that refer to an object or wait for it.
func (t Tracer) dependentsOf(in *load.Input, obj *manifest.Object) []dependent {
	var list []dependent
	for _, other := range in.Inventory.Objects() {
		adm, err := in.Inventory.Admit(other)
		if err != nil || other == obj {
			continue
		}
		holder := other
		if other.Origin != nil {
			holder = other.Origin
		}
		if holder == obj {
			continue
		}
		kind, namespace, name, ok := reconcile.Kinds().SourceRef(adm)
		if ok && kind == obj.Kind && name == obj.Name && cmp.Or(namespace, other.Namespace) == obj.Namespace {
			list = append(list, dependent{t.called(holder), holder.Pos.String(), "takes its chart from it"})
		}
		release, ok := adm.Typed.(*helmv2.HelmRelease)
		if !ok || obj.Kind != helmv2.HelmReleaseKind {
			continue
		}
		for _, d := range release.Spec.DependsOn {
			if d.Name == obj.Name && cmp.Or(d.Namespace, other.Namespace) == obj.Namespace {
				list = append(list, dependent{t.called(other), other.Pos.String(), "depends on it"})
			}
		}
	}
	return list
}
