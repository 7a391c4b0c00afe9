package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Input is what a command works on: the manifests of one cluster, and those of their objects
// that the options select. Reading.Input makes it; what is found out about it is added by the goroutine of the command.
type Input struct {
	Set       *manifest.Set
	Cluster   string   // its name where there are several, else ""
	Called    string   // its name, "" without a cluster directory
	Begins    string   // the directory that it begins in
	Loose     bool     // it is about files that nothing applies
	Unreached []string // files that nothing applies, of all clusters
	Rendered  *render.Result
	Inventory *inventory.Inventory
	table     reconcile.Table // the kinds of a run
	Selectors []Selector
	Namespace string
	Brought   map[store.Key]bool // selected because what is rendered needs them
	Shard     Shard
	Reported  map[*manifest.Object]bool // rejections that were printed
	unusable  []*manifest.Object        // objects that could not be built
	*Distribution
	Code int // of what went wrong while reading and judging

	*common
	validating bool // nothing is reported before all objects are judged
	// Found are errors that may block other objects and, if the input is validated, what else was found.
	Found []finding.Finding
}

// common is what the inputs of a run share: one for each cluster.
type common struct {
	Options *Options
	Dirs    []string        // that were named
	noted   map[string]bool // printed lines: files beside the input, what the renderer says, what cannot be read
	Ignores finding.Ignores
}

// once reports whether a line was not printed yet.
func (c *common) once(line string) bool {
	if c.noted[line] {
		return false
	}
	c.noted[line] = true
	return true
}

// Wanted reports whether an object is selected by namespace and arguments, and in the part that the run is about.
func (in *Input) Wanted(obj *manifest.Object) bool {
	return in.Selected(obj) && (in.Shard.has(obj) || in.Brought[inventory.KeyOf(obj)])
}

// Asked reports whether an object of any kind is.
func (in *Input) Asked(obj *manifest.Object) bool {
	if obj.ReferenceOnly || in.Namespace != "" && in.Namespace != obj.Namespace {
		return false
	}
	return len(in.Selectors) == 0 || slices.ContainsFunc(in.Selectors, func(s Selector) bool { return s.Matches(obj) })
}

// Replaceable are the objects that a directory may stand in for: those of the input, and the
// sources beside it that the selected charts refer to.
func (in *Input) Replaceable() []*manifest.Object {
	objects := slices.Clone(in.Inventory.Objects())
	wanted := slices.DeleteFunc(slices.Clone(objects), func(obj *manifest.Object) bool { return !in.Wanted(obj) })
	for _, adm := range in.WithSources(wanted...) {
		if !slices.Contains(objects, adm.Object) {
			objects = append(objects, adm.Object)
		}
	}
	return objects
}

// Kinds lists the kinds of the input.
func (in *Input) Kinds() string {
	counts := map[string]int{}
	var kinds []string
	count := func(kind string, n int) {
		if counts[kind] == 0 {
			kinds = append(kinds, kind)
		}
		counts[kind] += n
	}
	for _, obj := range in.Set.Objects() {
		count(obj.Kind, 1)
	}
	for _, s := range in.Set.Skipped() {
		count(s.Kind, s.Count)
	}
	for _, obj := range in.Rendered.Judged {
		if obj.Name != "" {
			count(obj.Kind, 1)
		}
	}
	if len(kinds) == 0 {
		return "the input holds no Flux objects"
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return "the input holds " + strings.Join(kinds, ", ")
}

// maxSources bounds the way from an object to where it comes from: a HelmRelease has
// a HelmChart, and that a source.
const maxSources = 4

// SourcesOf lists what an object comes from, the farthest first. A source that is
// missing is reported when the object is reconciled.
func (in *Input) SourcesOf(adm *admission.Admitted, rejected func(*inventory.RejectedError)) []*admission.Admitted {
	var sources []*admission.Admitted
	for range maxSources {
		kind, namespace, name, ok := in.table.SourceRef(adm)
		if !ok {
			break
		}
		source, err := in.Inventory.Find(kind, namespace, name)
		if refused, ok := errors.AsType[*inventory.RejectedError](err); ok {
			rejected(refused)
		}
		if err != nil {
			break
		}
		sources = append(sources, source)
		adm = source
	}
	slices.Reverse(sources)
	return sources
}

// WithSources admits objects, each behind what it comes from, each once. What is rejected is left out, and reported elsewhere.
func (in *Input) WithSources(objects ...*manifest.Object) (list []*admission.Admitted) {
	seen := map[*manifest.Object]bool{}
	for _, obj := range objects {
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			continue
		}
		for _, a := range append(in.SourcesOf(adm, func(*inventory.RejectedError) {}), adm) {
			if !seen[a.Object] {
				seen[a.Object] = true
				list = append(list, a)
			}
		}
	}
	return list
}

// WithoutLoose leaves out the input of files that nothing applies.
func WithoutLoose(inputs []*Input) []*Input {
	return slices.DeleteFunc(inputs, func(in *Input) bool { return in.Loose })
}
