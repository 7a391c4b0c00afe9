package render

import (
	"errors"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// missingError is a ConfigMap or Secret that variables should come from.
type missingError struct {
	ref    kustomizev1.SubstituteReference
	err    error
	hint   string
	reason string // why the cluster has it all the same; "" for what no one knows of
}

func (e *missingError) Error() string {
	return fmt.Sprintf("substitute from '%s/%s' error: %v", e.ref.Kind, e.ref.Name, e.err)
}

func (b *builder) missing(f *flux, ref kustomizev1.SubstituteReference, d *datum) *missingError {
	set := "set its variables with --substitute"
	if !b.o.Tolerant {
		set += "; --substitute-strict=false makes them empty"
	}
	name := fmt.Sprintf("%s %s/%s", ref.Kind, f.object.Namespace, ref.Name)
	m := &missingError{ref: ref}
	switch generator := b.generator(ref.Kind, f.object.Namespace, ref.Name); {
	case d != nil:
		m.err, m.hint = errors.New("encrypted with SOPS"), d.sealed+"; or "+set
		if d.inCluster {
			m.reason = "it is encrypted with SOPS: " + d.sealed
		}
		return m
	case generator != "":
		m.reason = generator + " makes it, in the cluster only"
		m.hint = generator + " makes " + name + " in the cluster only: " + set
	default:
		m.hint = "add the file that holds " + name + " with -f, or " + set
	}
	m.err = &manifest.NotFoundError{Kind: ref.Kind, Namespace: f.object.Namespace, Name: ref.Name}
	return m
}

// addGenerated records what a controller in the cluster makes of an object.
func (b *builder) addGenerated(content map[string]any) {
	_, kind, _, _ := manifest.Identify(content)
	for _, made := range manifest.GeneratedBy(content) {
		b.generated[datumKey(made.Kind, made.Namespace, made.Name)] = kind
	}
}

// generator is the kind of what makes a Secret or a ConfigMap in the cluster, "" for nothing that is known.
func (b *builder) generator(kind, namespace, name string) string {
	for _, in := range []string{namespace, ""} { // the latter for any
		key := datumKey(kind, in, name)
		if generator := b.generated[key]; generator != "" {
			return withArticle(generator)
		}
		for _, p := range b.index.generators[key] {
			if !b.taken(p.path) {
				return withArticle(p.object.Kind)
			}
		}
	}
	return ""
}

// absence is a ConfigMap or Secret that a Kustomization takes variables from, and that was not found when these were needed.
type absence struct {
	flux *flux
	at   int // in spec.postBuild.substituteFrom
	d    *datum
}

// warnAbsent warns of the ConfigMaps and Secrets that are not there. Only now it is known what makes them in the cluster: that
// may be an object of a Kustomization further down.
func (b *builder) warnAbsent() {
	for _, a := range b.absent {
		ref := a.flux.spec.PostBuild.SubstituteFrom[a.at]
		missing := b.missing(a.flux, ref, a.d)
		if missing.reason != "" && b.o.Tolerant {
			b.notice(Notice{Text: fmt.Sprintf("the variables of %s %s are not known: %s", ref.Kind, ref.Name, missing.reason)})
			continue
		}
		at := a.flux.object.Position("spec", "postBuild", "substituteFrom", a.at)
		b.warnAt(finding.MissingVariables, a.flux.object, missing.Error(), missing.hint, at)
	}
}

// warnSealed warns of a Secret that fails its Kustomization. What nothing here applies may be patched on its way into the
// cluster.
func (b *builder) warnSealed(f *flux, obj *manifest.Object) {
	if f.spec.Decryption != nil || obj.Kind != "Secret" || !strings.HasPrefix(f.object.Built, "Kustomization ") {
		return
	}
	text := fmt.Sprintf("of %s: Secret/%s/%s is SOPS encrypted, configuring decryption is required for this secret to be reconciled",
		f.name(), obj.Namespace, obj.Name)
	b.warnAt(finding.NoDecryption, obj, text, "", obj.Pos)
}

func withArticle(kind string) string {
	switch {
	case kind == "":
		return ""
	case strings.ContainsAny(kind[:1], "AEIO"):
		return "an " + kind
	}
	return "a " + kind
}
