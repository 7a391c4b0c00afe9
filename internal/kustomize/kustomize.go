// Package kustomize builds a directory as kustomize does, in time that grows with the number of objects. Each change of an object
// is made by kustomize's own transformers and filters; the order in which they run, and what finds objects by their
// identities, is in this package. It knows nothing of Flux, runs no plugins, and asks no network.
package kustomize

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

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
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/openapi/kubernetesapi"
	"sigs.k8s.io/kustomize/kyaml/resid"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// maxObjects bounds how many objects a build may give.
const maxObjects = 50_000

// maxRead bounds what one build may read, in bytes. A base that is used in many ways is read as often.
const maxRead = 128 << 20

// Object is an object that was built, and the file that it comes from: for a generated one the kustomization file, by the names
// that lead to it.
type Object struct {
	File string
	res  *resource.Resource
}

// Build is a build of a directory. It is used once.
type Build struct {
	Source  Source
	Budget  *Budget
	What    string         // is built, for errors
	Patched func(PatchUse) // called after each patch with a target, nil for nothing

	ctx     context.Context
	factory *resmap.Factory
	files   map[*resource.Resource]string // that objects come from
	read    int                           // bytes
}

// PatchUse is a patch with a target that was applied.
type PatchUse struct {
	File   string // the kustomization file
	Index  int    // in patches, of the kustomization that the Source returned
	Target types.Selector
	Fitted bool          // an object fitted the target
	Near   []resid.ResId // some of the objects that there were, where none fitted
}

// maxNear bounds the objects that are named for a patch that none fitted.
const maxNear = 200

// PanicError is what a library panicked with. It must not cost other builds theirs.
type PanicError struct{ Value any }

func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error, please report it: %v", e.Value)
}

// Guard returns what f does. A panic in it is a PanicError.
func Guard[T any](f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	return f()
}

// Run builds a directory with a kustomization, which it may change. The file is that of the kustomization, where it is or would be.
func (b *Build) Run(ctx context.Context, dir, file string, k *types.Kustomization) ([]Object, error) {
	return Guard(func() ([]Object, error) { return b.run(ctx, dir, file, k) })
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

// finish does what is done once all names are known.
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

// order sorts the objects if the kustomization says so.
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

// cleaned removes what kustomize notes of objects while it builds.
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

// Parse reads objects. No two of them may be called the same.
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

// Objects reads objects of a file. kustomize resolves the anchors of all that it reads, and compares the keys of each mapping
// with each other on the way; a text without any is read without that.
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

// maxEqual bounds how many pairs of equal keys an object has: where kustomize decodes it, each takes a message.
const maxEqual = 10_000

var errEqual = fmt.Errorf("more than %d pairs of equal keys in mappings", maxEqual)

// equal counts the pairs of equal keys in mappings that need more memory than the mapping.
func equal(n *yaml.Node) (pairs int) {
	if n.Kind == yaml.MappingNode && len(n.Content) > 32 {
		seen := make(map[string]int, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			pairs += seen[key]
			seen[key]++
		}
	}
	for _, part := range n.Content {
		pairs += equal(part)
	}
	return pairs
}

// isList reports whether an object may be a list of objects, or contains a list that kustomize refuses.
func isList(n *kyaml.RNode) bool {
	empty, _ := n.HasNilEntryInList()
	return empty || strings.HasSuffix(n.GetKind(), "List")
}

// YAML returns the text of an object.
func (o Object) YAML() ([]byte, error) { return o.res.AsYAML() }

// Content decodes an object. kustomize would write it as YAML and read that again.
func (o Object) Content() (map[string]any, error) {
	asWritten(o.res.YNode())
	value, err := decoded(o.res.YNode(), true)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	return content, utiljson.Unmarshal(text, &content)
}

// decoded is a node without anchors as the library decodes it, which compares the keys of a mapping with each other. Keys of the
// root are read as texts.
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
	if n.Tag == "!!str" {
		return n.Value, nil
	}
	var value any
	return value, n.Decode(&value)
}

// asWritten makes texts of values that are quoted: a merge leaves the style of a value, and its new type is lost where it is
// written.
func asWritten(n *yaml.Node) {
	if n == nil {
		return
	}
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.Kind == yaml.ScalarNode && n.Style&quoted != 0 && n.Style&yaml.TaggedStyle == 0 && n.Tag != "!!binary" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		asWritten(c)
	}
}

// setSchema sets the schema of the whole process as the kustomization names it.
func (t *target) setSchema(first bool) error {
	var text []byte
	if path, ok := t.k.OpenAPI["path"]; ok {
		var err error
		if text, err = t.loader.Load(path); err == nil {
			err = checkSchema(text)
		}
		if err != nil {
			return err
		}
	}
	if err := openapi.SetSchema(t.k.OpenAPI, text, first); err != nil || text == nil {
		return err
	}
	// The schema is parsed when it is first used, and kustomize panics if it is invalid.
	_, err := Guard(func() (any, error) { return openapi.Schema(), nil })
	if p, ok := errors.AsType[*PanicError](err); ok {
		return fmt.Errorf("openapi.path: %v", p.Value)
	}
	return err
}

func resetSchema() {
	if openapi.GetSchemaVersion() != kubernetesapi.DefaultOpenAPI {
		openapi.ResetOpenAPI()
	}
}

func (t *target) check() error {
	if errs := t.k.EnforceFields(); len(errs) > 0 {
		return fmt.Errorf("Failed to read kustomization file under %s:\n%s", t.loader.root, strings.Join(errs, "\n"))
	}
	return nil
}
