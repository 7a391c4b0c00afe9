// Package generate computes the artifacts of an ArtifactGenerator: which file of an artifact is which file of a source, and the
// errors of source-watcher. Its input and its results are trees; it opens no files itself.
package generate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/helmsrc/helmsrc/internal/tree"
)

// Kind is the kind of the objects, Group is their API group.
const (
	Kind  = swv1.ArtifactGeneratorKind
	Group = "source.extensions.fluxcd.io"
)

// Reasons of conditions.
const (
	ValidationFailed = swv1.ValidationFailedReason
	BuildFailed      = "BuildFailed"
)

// Error is an error that source-watcher would report.
type Error struct {
	Reason  string
	Path    []any // of the field that it is about
	Message string
	Stalled bool
}

func (e *Error) Error() string { return e.Message }

// Doubt describes an effect that source-watcher does not report, and that is rarely meant.
type Doubt struct {
	Path []any // of the field that it is about
	Text string
}

// Artifact is an artifact of a generator.
type Artifact struct {
	Index  int // of the entry in spec.artifacts
	Spec   swv1.OutputArtifact
	Labels map[string]string // of the captures
	Tree   *Tree
}

// Validate checks a spec as the controller does before it reads any source.
func Validate(spec *swv1.ArtifactGeneratorSpec) *Error {
	refuse := func(message string, path ...any) *Error {
		return &Error{ValidationFailed, append([]any{"spec"}, path...), message, true}
	}
	aliases, names := map[string]bool{}, map[string]bool{}
	for i, s := range spec.Sources {
		if aliases[s.Alias] {
			return refuse(fmt.Sprintf("duplicate source alias '%s' found", s.Alias), "sources", i, "alias")
		}
		aliases[s.Alias] = true
	}
	for i, a := range spec.OutputArtifacts {
		alias := strings.TrimPrefix(a.Revision, "@")
		switch {
		case names[a.Name]:
			return refuse(fmt.Sprintf("duplicate artifact name '%s' found", a.Name), "artifacts", i, "name")
		case alias != "" && !aliases[alias]:
			return refuse(fmt.Sprintf("artifact %s revision source alias '%s' not found", a.Name, alias), "artifacts", i, "revision")
		}
		names[a.Name] = true
		if errs := validation.IsDNS1123Subdomain(a.Name); spec.PathPattern == "" && len(errs) > 0 {
			return refuse(fmt.Sprintf("artifact name %q is not a valid Kubernetes object name: %s", a.Name, strings.Join(errs, "; ")), "artifacts", i, "name")
		}
	}
	return nil
}

// UnknownAlias returns the first alias of a copy operation that no source has. The path is nil if all aliases are known.
func UnknownAlias(spec *swv1.ArtifactGeneratorSpec) (alias string, path []any) {
	for i, a := range spec.OutputArtifacts {
		for j, op := range a.Copy {
			alias, _, _ := splitFrom(op.From)
			if !slices.ContainsFunc(spec.Sources, func(s swv1.SourceReference) bool { return s.Alias == alias }) {
				return alias, []any{"spec", "artifacts", i, "copy", j, "from"}
			}
		}
	}
	return "", nil
}

// Doubts returns the doubts about a spec that need no source.
func Doubts(spec *swv1.ArtifactGeneratorSpec) []Doubt {
	var list []Doubt
	known := func(alias string) bool {
		return slices.ContainsFunc(spec.Sources, func(s swv1.SourceReference) bool { return s.Alias == alias })
	}
	for i, a := range spec.OutputArtifacts {
		at := func(path ...any) []any { return append([]any{"spec", "artifacts", i}, path...) }
		if alias := strings.TrimPrefix(a.OriginRevision, "@"); alias != "" && !known(alias) {
			list = append(list, Doubt{at("originRevision"), fmt.Sprintf("no source has the alias '%s': source-watcher does not notice, and sets no origin revision", alias)})
		}
		if known(a.Name) {
			list = append(list, Doubt{at("name"), fmt.Sprintf("'%s' is the alias of a source too: the artifact contains all of that source", a.Name)})
		}
		for j, op := range a.Copy {
			for _, text := range doubtsOf(op, spec.PathPattern != "") {
				list = append(list, Doubt{at("copy", j, "from"), text})
			}
		}
	}
	return list
}

// Build makes the artifacts of a valid spec, in its order, up to the first that cannot be made. Sources are by alias. The
// error is an [*Error], or the cause of the context's end.
func Build(ctx context.Context, spec *swv1.ArtifactGeneratorSpec, sources map[string]*Tree) ([]Artifact, []Doubt, error) {
	artifacts, doubts, err := Expand(spec, sources)
	if err != nil {
		return nil, nil, err
	}
	for i := range artifacts {
		b := &build{ctx: ctx, sources: sources, artifact: &artifacts[i]}
		if err := b.run(); err != nil {
			return artifacts[:i], doubts, err
		}
		if t := sources[artifacts[i].Spec.Name]; t != nil {
			sources[artifacts[i].Spec.Name] = artifacts[i].Tree.clone() // it was staged in the directory of the source
		}
		b.drop()
		doubts = append(doubts, b.doubts...)
	}
	return artifacts, doubts, nil
}

// drop removes the files that are never in the archive of an artifact.
func (b *build) drop() {
	t := b.artifact.Tree.clone()
	rules := new(tree.Rules).WithDefaults()
	gone := map[string]bool{}
	var dropped []string
	for _, dir := range t.Dirs() {
		if gone[dir] = rules.Ignored(dir, true) || under(gone, dir); gone[dir] {
			delete(t.dirs, dir)
		}
	}
	for _, name := range slices.Clone(t.Names()) {
		if rules.Ignored(name, false) || under(gone, name) {
			t.remove(name)
			dropped = append(dropped, name)
		}
	}
	b.artifact.Tree = t
	if len(dropped) > 0 {
		files := dropped[0]
		if more := len(dropped) - 1; more > 0 {
			files += fmt.Sprintf(" and %d more", more)
		}
		b.doubt("artifacts do not contain "+files+": images, archives, and files of version control, CI and SOPS are left out", "copy")
	}
}
