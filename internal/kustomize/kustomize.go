// Package kustomize builds a directory as kustomize does, in time that grows with the number of objects. kustomize's own
// transformers and filters change the objects; this package decides their order and finds objects by their identities. It
// does not know Flux, runs no plugins, and uses no network.
package kustomize

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // kustomize has no other door to its transformers
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/provenance"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/edit"
)

// maxObjects is the limit of objects in the result of a build.
const maxObjects = 50_000

// maxRead is the limit, in bytes, of files that a build reads. A base counts as often as it is included.
const maxRead = 128 << 20

// Object is a built object with its file: for a generated object the kustomization file. The path of the file follows the names
// in the kustomizations.
type Object struct {
	File string
	res  *resource.Resource
}

// Build is a build of a directory. It is used once. Builds run one after the other: the schema of kyaml belongs to the process.
type Build struct {
	Source  Source
	Budget  *Budget
	What    string         // the name of the build, for errors
	Patched func(PatchUse) // called after each patch with a target; may be nil

	ctx     context.Context
	factory *resmap.Factory
	files   map[*resource.Resource]string // of objects
	read    int                           // bytes
	named   bool                          // a kustomization named a schema
}

// PatchUse is a patch with a target that was applied.
type PatchUse struct {
	File   string // the kustomization file
	Index  int    // in patches, of the kustomization that the Source returned
	Target types.Selector
	Fitted bool          // an object matched the target
	Near   []resid.ResId // some of the objects, if no object matched
}

// maxNear is the limit of objects that are listed for a patch without a matching object.
const maxNear = 200

// PanicError is a panic of a library as an error, so that other builds still have results.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error, please report it: %v", e.Value)
}

// Guard calls f and returns its results. It returns a panic in f as a PanicError.
func Guard[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	return f()
}

// Run builds a directory with a kustomization, which it may change. file is the path of the kustomization file, which may be missing.
func (b *Build) Run(ctx context.Context, dir, file string, k *types.Kustomization) ([]Object, error) {
	return watched(ctx, b.Budget, b.What, func(ctx context.Context) ([]Object, error) { return b.run(ctx, dir, file, k) })
}

func (b *Build) run(ctx context.Context, dir, file string, k *types.Kustomization) ([]Object, error) {
	b.ctx, b.files = ctx, map[*resource.Resource]string{}
	b.factory = resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory())
	root, err := b.Source.Directory(dir)
	if err != nil {
		return nil, err
	}
	k.FixKustomization()
	t := &target{Build: b, k: k, file: filepath.Base(file), loader: &loader{build: b, root: root}, at: dir}
	if len(k.BuildMetadata) > 0 {
		t.origin = &resource.Origin{}
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	defer resetSchema()
	if err := t.setSchema(true); err != nil {
		return nil, err
	}
	a := b.newAccumulator()
	if err := t.accumulate(a); err != nil {
		return nil, err
	}
	if err := a.finish(); err != nil {
		return nil, err
	}
	if err := a.order(k.SortOptions); err != nil {
		return nil, err
	}
	return a.cleaned(k.BuildMetadata)
}

// finish runs the final steps, when all names are known.
func (a *accumulator) finish() error {
	h := builtins.NewHashTransformerPlugin()
	if err := h.Config(resmap.NewPluginHelpers(nil, nil, a.factory, nil), nil); err != nil {
		return err
	}
	if err := a.transform(h, nil); err != nil {
		return err
	}
	if err := a.updateReferences(); err != nil {
		return err
	}
	if err := a.resolveVars(); err != nil {
		return err
	}
	var left []*resource.Resource
	for _, r := range a.list {
		meta, err := r.GetValidatedMetadata()
		if err != nil {
			return err
		}
		if local, given := meta.Annotations[konfig.IgnoredByKustomizeAnnotation]; !given || local == "false" {
			left = append(left, r)
		}
	}
	a.list = left
	if len(left) > maxObjects {
		return fmt.Errorf("more than %d objects", maxObjects)
	}
	return a.recount()
}

// order sorts the objects if the kustomization has sort options.
func (a *accumulator) order(o *types.SortOptions) error {
	switch {
	case o == nil:
		return nil
	case o.Order != types.FIFOSortOrder && o.Order != types.LegacySortOrder:
		return fmt.Errorf("the field 'sortOptions.order' must be one of [%s, %s]", types.FIFOSortOrder, types.LegacySortOrder)
	case o.Order == types.FIFOSortOrder && o.LegacySortOptions != nil:
		return fmt.Errorf("the field 'sortOptions.legacySortOptions' is set but the selected sort order is '%v', not 'legacy'", o.Order)
	case o.Order == types.FIFOSortOrder:
		return nil
	}
	first, last := defaultConfig().OrderFirst, defaultConfig().OrderLast
	if o.LegacySortOptions != nil {
		first, last = o.LegacySortOptions.OrderFirst, o.LegacySortOptions.OrderLast
	}
	ranks := map[string]int{}
	for i, kind := range first {
		ranks[kind] = i - len(first)
	}
	for i, kind := range last {
		ranks[kind] = i + 1
	}
	type sortable struct {
		r         *resource.Resource
		gvk       resid.Gvk
		text, key string
	}
	var list []sortable
	for _, r := range a.list {
		id := r.CurId()
		text := strings.Join([]string{cmp.Or(id.Group, "~G"), cmp.Or(id.Version, "~V"), cmp.Or(id.Kind, "~K")}, "_")
		list = append(list, sortable{r, id.Gvk, text, strings.Join([]string{id.Gvk.String(), cmp.Or(id.Namespace, "~X"), cmp.Or(id.Name, "~N")}, "|")})
	}
	slices.SortStableFunc(list, func(x, y sortable) int {
		order := strings.Compare(x.text, y.text)
		switch {
		case x.gvk.Equals(y.gvk):
			return strings.Compare(x.key, y.key)
		case x.gvk.Kind == types.NamespaceKind && y.gvk.Kind == types.NamespaceKind && (x.gvk.Group == "" || y.gvk.Group == ""):
			order = -order
		}
		return cmp.Or(cmp.Compare(ranks[x.gvk.Kind], ranks[y.gvk.Kind]), order)
	})
	for i, s := range list {
		a.list[i] = s.r
	}
	return a.unique("SortOrderTransformer: Failed to append to resources: " + duplicateText)
}

// cleaned removes the annotations that kustomize adds during a build.
func (a *accumulator) cleaned(metadata []string) ([]Object, error) {
	if slices.Contains(metadata, types.ManagedByLabelOption) {
		t := &builtins.LabelTransformerPlugin{
			Labels:     map[string]string{konfig.ManagedbyLabelKey: fmt.Sprintf("kustomize-%s", provenance.GetProvenance().Semver())},
			FieldSpecs: []types.FieldSpec{{Path: "metadata/labels", CreateIfNotPresent: true}},
		}
		if err := a.transform(t, nil); err != nil {
			return nil, err
		}
	}
	found := make([]Object, len(a.list))
	for i, r := range a.list {
		r.RemoveBuildAnnotations()
		if !slices.Contains(metadata, types.OriginAnnotations) {
			if err := r.SetOrigin(nil); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(metadata, types.TransformerAnnotations) {
			if err := r.ClearTransformations(); err != nil {
				return nil, err
			}
		}
		found[i] = Object{a.files[r], r}
	}
	return found, a.budget.Keep(a.what, a.sum)
}

// Parse reads objects. It returns an error if two have the same identity.
func (b *Build) Parse(text []byte) ([]*resource.Resource, error) {
	m := newObjects(b.What, b.Budget)
	var err error
	if m.list, err = b.Objects(text); err != nil {
		return nil, err
	}
	if len(m.list) > maxObjects {
		return nil, fmt.Errorf("more than %d objects", maxObjects)
	}
	m.all = true
	if err := m.recount(); err != nil {
		return nil, err
	}
	return m.list, m.unique(duplicateText)
}

// Objects reads the objects of a file. kustomize resolves anchors in every text, and compares all keys of each mapping to do so.
// A text without anchors is read without that.
func (b *Build) Objects(text []byte) ([]*resource.Resource, error) {
	list, err := b.objects(text)
	for _, r := range list {
		if err == nil && equal(r.YNode()) > maxEqual {
			err = errEqual
		}
	}
	return list, err
}

func (b *Build) objects(text []byte) ([]*resource.Resource, error) {
	factory := provider.NewDefaultDepProvider().GetResourceFactory()
	nodes, err := (&kio.ByteReader{OmitReaderAnnotations: true, Reader: bytes.NewReader(text)}).Read()
	if err == nil && !bytes.ContainsAny(text, "&*<") && !bytes.Contains(text, []byte(konfig.IgnoredByKustomizeAnnotation)) && !slices.ContainsFunc(nodes, isList) {
		return factory.ResourcesFromRNodes(nodes)
	}
	seen := map[*yaml.Node]int64{}
	for _, n := range nodes {
		if err := b.Budget.Work(b.What, keyWork*bound.Comparisons(n.YNode(), seen)); err != nil {
			return nil, err
		}
	}
	return factory.SliceFromBytes(text)
}

// maxEqual is the limit of pairs of equal keys in an object: kustomize writes a message for each pair when it decodes the object.
const maxEqual = 10_000

var errEqual = fmt.Errorf("more than %d pairs of equal keys in mappings", maxEqual)

// equal returns the number of pairs of equal keys. Small mappings do not count: they have few pairs.
func equal(root *yaml.Node) (pairs int) {
	edit.Each(root, func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode || len(n.Content) <= 32 {
			return
		}
		seen := make(map[string]int, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			pairs += seen[key]
			seen[key]++
		}
	})
	return pairs
}

// isList reports whether an object may be a list of objects, or contains a list that kustomize refuses.
func isList(n *kyaml.RNode) bool {
	empty, _ := n.HasNilEntryInList()
	return empty || strings.HasSuffix(n.GetKind(), "List")
}

// YAML returns the text of an object.
func (o Object) YAML() ([]byte, error) { return o.res.AsYAML() }

// Content decodes an object. kustomize would write it as YAML and parse that again.
func (o Object) Content() (map[string]any, error) {
	edit.Each(o.res.YNode(), asWritten)
	value, err := decoded(o.res.YNode(), true)
	if err != nil {
		return nil, err
	}
	content, _ := value.(map[string]any)
	return content, nil
}

// decoded returns a node without anchors as the library decodes it, in the types of JSON. The library compares all keys of a
// mapping. Keys of the root are read as strings.
func decoded(n *yaml.Node, root bool) (any, error) {
	var err error
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			if list[i], err = decoded(item, false); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		values := make(map[string]any, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key, tag := n.Content[i], n.Content[i].ShortTag()
			if _, twice := values[key.Value]; twice {
				first := slices.IndexFunc(n.Content, func(k *yaml.Node) bool { return k.Value == key.Value })
				return nil, &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: mapping key %q already defined at line %d", key.Line, key.Value, n.Content[first].Line)}}
			}
			switch {
			case key.Kind != yaml.ScalarNode || !root && tag != "!!str":
				return nil, &json.UnsupportedTypeError{Type: reflect.TypeFor[map[any]any]()}
			case tag == "!!null":
				continue
			}
			if values[key.Value], err = decoded(n.Content[i+1], false); err != nil {
				return nil, err
			}
		}
		return values, nil
	}
	if n.Tag == "!!str" && utf8.ValidString(n.Value) {
		return n.Value, nil
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	err = utiljson.Unmarshal(text, &value)
	return value, err
}

// asWritten turns quoted values into strings: a merge keeps the style of a value, and quotes hide its new type when it is
// written.
func asWritten(n *yaml.Node) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Kind == yaml.ScalarNode && n.Style&quoted != 0 && n.Style&yaml.TaggedStyle == 0 && n.Tag != "!!binary" {
		n.Tag = "!!str"
	}
}

func (t *target) check() error {
	if errs := t.k.EnforceFields(); len(errs) > 0 {
		return fmt.Errorf("Failed to read kustomization file under %s:\n%s", t.loader.root, strings.Join(errs, "\n"))
	}
	return nil
}
