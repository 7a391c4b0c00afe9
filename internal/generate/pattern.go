package generate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// maxArtifacts is the limit of the artifacts of one generator.
const maxArtifacts = 10_000

var capture = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([^{}]*)\}`) })

// Expand returns the artifacts of a spec. With a pathPattern, it renders them for each directory that matches it.
func Expand(spec *swv1.ArtifactGeneratorSpec, sources map[string]*Tree) ([]Artifact, []Doubt, error) {
	if spec.PathPattern == "" {
		artifacts := make([]Artifact, len(spec.OutputArtifacts))
		for i, a := range spec.OutputArtifacts {
			artifacts[i] = Artifact{Index: i, Spec: a}
		}
		return artifacts, nil, nil
	}
	p := &pathPattern{spec: spec}
	artifacts, err := p.expand(sources)
	if err != nil {
		return nil, nil, err
	}
	if len(artifacts) == 0 {
		return nil, []Doubt{{[]any{"spec", "pathPattern"}, fmt.Sprintf("no directory matches %q: no artifact is made", spec.PathPattern)}}, nil
	}
	return artifacts, nil, nil
}

type pathPattern struct {
	spec  *swv1.ArtifactGeneratorSpec
	names []string // of the captures
	by    map[string]string
}

func (p *pathPattern) refuse(format string, args ...any) error {
	return &Error{BuildFailed, []any{"spec", "pathPattern"}, "failed to expand path pattern: " + fmt.Sprintf(format, args...), true}
}

func (p *pathPattern) expand(sources map[string]*Tree) ([]Artifact, error) {
	alias, pattern, _ := splitFrom(p.spec.PathPattern)
	source := sources[alias]
	if source == nil {
		return nil, p.refuse("pathPattern %q: source alias %s not found in local sources", p.spec.PathPattern, alias)
	}
	re, err := p.compile(pattern)
	if err != nil {
		return nil, err
	}
	if err := bound.Match(source.Dirs(), re.String()); err != nil {
		return nil, p.refuse("pathPattern: %v", err)
	}
	p.by = map[string]string{}
	var artifacts []Artifact
	for _, dir := range source.Dirs() {
		values := re.FindStringSubmatch(dir)
		if values == nil {
			continue
		}
		made, err := p.render(dir, values[1:])
		if err != nil {
			return nil, err
		}
		if artifacts = append(artifacts, made...); len(artifacts) > maxArtifacts {
			return nil, p.refuse("more than %d artifacts", maxArtifacts)
		}
	}
	return artifacts, nil
}

// compile converts the pattern to an expression: a capture is one element of a path, or a part of one.
func (p *pathPattern) compile(pattern string) (*regexp.Regexp, error) {
	var expr strings.Builder
	at := 0
	for _, m := range capture().FindAllStringSubmatchIndex(pattern, -1) {
		name := pattern[m[2]:m[3]]
		switch {
		case len(validation.IsQualifiedName(name)) > 0 || strings.Contains(name, "/"):
			return nil, p.refuse("pathPattern %q: invalid capture %q", p.spec.PathPattern, name)
		case slices.Contains(p.names, name):
			return nil, p.refuse("pathPattern %q: duplicate capture %q", p.spec.PathPattern, name)
		}
		p.names = append(p.names, name)
		expr.WriteString(regexp.QuoteMeta(pattern[at:m[0]]) + "([^/]+)")
		at = m[1]
	}
	if strings.ContainsAny(pattern[at:], "{}") {
		return nil, p.refuse("pathPattern %q: unbalanced braces", p.spec.PathPattern)
	}
	return regexp.MustCompile("^" + expr.String() + regexp.QuoteMeta(pattern[at:]) + "$"), nil
}

func (p *pathPattern) render(dir string, values []string) ([]Artifact, error) {
	labels := map[string]string{}
	var exact, lower []string
	for i, name := range p.names {
		labels[name] = strings.ToLower(values[i])
		if errs := validation.IsValidLabelValue(labels[name]); len(errs) > 0 {
			return nil, p.refuse("directory %q: value %q of capture %q is not a valid label value: %s", dir, labels[name], name, strings.Join(errs, "; "))
		}
		exact = append(exact, "{"+name+"}", values[i])
		lower = append(lower, "{"+name+"}", labels[name])
	}
	asIs, lowered := strings.NewReplacer(exact...), strings.NewReplacer(lower...)
	var artifacts []Artifact
	for i, a := range p.spec.OutputArtifacts {
		a.Name = lowered.Replace(a.Name)
		if errs := validation.IsDNS1123Subdomain(a.Name); len(errs) > 0 {
			return nil, p.refuse("directory %q: artifact name %q is not a valid Kubernetes object name: %s", dir, a.Name, strings.Join(errs, "; "))
		}
		if first, twice := p.by[a.Name]; twice {
			return nil, p.refuse("directories %q and %q both resolve to artifact name %q", first, dir, a.Name)
		}
		p.by[a.Name] = dir
		a.Copy = slices.Clone(a.Copy)
		for j := range a.Copy {
			a.Copy[j].From, a.Copy[j].To = asIs.Replace(a.Copy[j].From), asIs.Replace(a.Copy[j].To)
		}
		artifacts = append(artifacts, Artifact{Index: i, Spec: a, Labels: maps.Clone(labels)})
	}
	return artifacts, nil
}
