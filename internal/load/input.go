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

// Input is the input of a command: the manifests of one cluster, and the selection of objects by the options. Reading.Input makes
// it; only the goroutine of the command adds to it.
type Input struct {
	Set       *manifest.Set
	Cluster   string   // its name if there are several, else ""
	Called    string   // its name, "" without a cluster directory
	Begins    string   // the directory that it begins in
	Loose     bool     // it is about files that are not applied
	Unreached []string // files that are not applied in any cluster
	Rendered  *render.Result
	Inventory *inventory.Inventory
	table     reconcile.Table // the kinds of a run
	Selectors []Selector
	Namespace string
	Required  map[store.Key]bool // selected because rendered objects need them
	Shard     Shard
	Reported  map[*manifest.Object]bool // rejections that were printed
	unusable  []*manifest.Object        // objects that could not be built
	*Distribution
	Code int // exit code of reading and checking

	*common
	validating bool // report findings only when all objects are checked
	// Found holds errors that may block other objects and, if the input is validated, all other findings.
	Found []finding.Finding
}

// common is the part that the inputs of a run share.
type common struct {
	Options *Options
	Dirs    []string        // that were named
	noted   map[string]bool // printed lines: files beside the input, messages of the renderer, read errors
	Ignores finding.Ignores
}

// Once reports whether a line was not printed before.
func (c *common) Once(line string) bool {
	if c.noted[line] {
		return false
	}
	c.noted[line] = true
	return true
}

// Wanted reports whether an object is selected by namespace and arguments, and is in the run's shard.
func (in *Input) Wanted(obj *manifest.Object) bool {
	return in.Selected(obj) && (in.Shard.has(obj) || in.Required[inventory.KeyOf(obj)])
}

// Asked reports whether an object of any kind is selected by namespace and arguments.
func (in *Input) Asked(obj *manifest.Object) bool {
	if obj.ReferenceOnly || in.Namespace != "" && in.Namespace != obj.Namespace {
		return false
	}
	return len(in.Selectors) == 0 || slices.ContainsFunc(in.Selectors, func(s Selector) bool { return s.Matches(obj) })
}

// Replaceable returns the objects that a directory may replace: those of the input, and the
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
		return "the input contains no Flux objects"
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return "the input contains " + strings.Join(kinds, ", ")
}

// maxSources is the limit of sources in a chain: a HelmRelease has
// a HelmChart, and that has a source.
const maxSources = 4

// SourcesOf returns the sources of an object, the farthest first. It skips a missing source, which
// is reported when the object is reconciled.
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

// WithSources admits objects, each once and after its sources. It leaves out rejected objects, which are reported elsewhere.
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

// WithoutLoose returns the inputs except the one for files that are not applied.
func WithoutLoose(inputs []*Input) []*Input {
	return slices.DeleteFunc(inputs, func(in *Input) bool { return in.Loose })
}
