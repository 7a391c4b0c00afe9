package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// originAnnotation says where kustomize took an object from.
	originAnnotation = "config.kubernetes.io/origin"

	// maxObjects bounds what one build may give.
	maxObjects = 50_000
)

// built is an object as kustomize gives it, and the file that it comes from.
type built struct {
	content map[string]any
	file    string         // absolute; the kustomization file of what a generator made
	shown   map[string]any // what may be shown of it, nil for all
}

// panicError is what a library panicked with in one build. It must not cost the others theirs.
type panicError struct {
	value any
}

func (e *panicError) Error() string {
	// At the file of openapi.path, kustomize panics where others return an error.
	if err, ok := e.value.(error); ok && strings.HasPrefix(err.Error(), "invalid schema file: ") {
		return "openapi.path: " + err.Error()
	}
	return fmt.Sprintf("internal error, please report it: %v", e.value)
}

// build runs kustomize on a directory with the kustomization given, in place of the file there.
func (r *repository) build(ctx context.Context, dir, file string, k *types.Kustomization, replace map[string][]byte) ([]built, error) {
	return r.buildUnder(ctx, nil, dir, file, k, replace)
}

// buildUnder does it with what Secrets hold under a veil, nil for none.
func (r *repository) buildUnder(ctx context.Context, v *veil, dir, file string, k *types.Kustomization, replace map[string][]byte) ([]built, error) {
	given := *k
	keep := slices.Contains(k.BuildMetadata, types.OriginAnnotations)
	if !keep {
		k.BuildMetadata = append(slices.Clone(k.BuildMetadata), types.OriginAnnotations)
	}
	files := map[string][]byte{}
	for path, text := range replace {
		if !r.checked(path) {
			files[path] = text
		}
	}
	fs := r.fileSystem(ctx, files)
	fs.lacking = r.lacks(dir, k)
	fs.forgive(dir, k)
	fs.veil = v
	if err := r.inline(fs, dir, k); err != nil {
		return nil, unavailable(r.plainError(fs.unquoted(err)))
	}
	objects, err := guarded(fs.ctx, r.guard, r.display(file), func() ([]built, error) {
		if v == nil {
			if found, ok := r.directly(fs, dir, &given); ok {
				return decoded(fs, found, r.display(file))
			}
		}
		text, err := json.Marshal(k) // which is YAML, too
		if err != nil {
			return nil, err
		}
		files[file] = text
		m, err := run(fs, dir, r.display(file))
		if err != nil {
			return nil, err
		}
		return listed(fs, m, dir, keep)
	})
	if err != nil {
		return nil, unavailable(r.plainError(fs.unquoted(err)))
	}
	return objects, nil
}

// decoded decodes what was found without a build.
func decoded(c *confined, found []sourced, what string) ([]built, error) {
	var weight int64
	for _, p := range found {
		weight += p.weight()
	}
	if err := c.guard.keeps(what, weight); err != nil {
		return nil, err
	}
	var objects []built
	for _, p := range found {
		content := p.content
		if content == nil {
			var err error
			if content, err = contentOf(p.Resource); err != nil {
				return nil, err
			}
			meta, _ := content["metadata"].(map[string]any)
			if annotations, ok := meta["annotations"].(map[string]any); ok && len(annotations) == 0 {
				delete(meta, "annotations") // as kustomize does
			}
		}
		objects = append(objects, built{content: content, file: p.file})
	}
	return objects, nil
}

// contentOf decodes an object. kustomize would write it as YAML and read that again.
func contentOf(res *resource.Resource) (map[string]any, error) {
	var content map[string]any
	err := res.YNode().Decode(&content)
	var text []byte
	if err == nil {
		text, err = json.Marshal(content)
	}
	if err != nil {
		if text, err = res.MarshalJSON(); err != nil { // for its message
			return nil, err
		}
	}
	content = nil
	return content, utiljson.Unmarshal(text, &content)
}

// listed decodes what was built.
func listed(c *confined, m resmap.ResMap, dir string, keep bool) ([]built, error) {
	var objects []built
	for _, res := range m.Resources() {
		if err := c.ctx.Err(); err != nil {
			return nil, c.ended()
		}
		content, err := contentOf(res)
		if err != nil {
			return nil, err
		}
		objects = append(objects, built{content: content, file: originOf(content, dir, keep)})
	}
	return objects, nil
}

// run is kustomize's own build, of a size that can be decoded. Its file system ends with the context.
func run(fs *confined, dir, what string) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions()
	options.LoadRestrictions = types.LoadRestrictionsNone // the file system has its own
	options.PluginConfig = types.DisabledPluginConfig()
	options.Reorder = krusty.ReorderOptionNone
	m, err := krusty.MakeKustomizer(options).Run(fs, dir)
	switch {
	case err != nil && fs.failed != nil:
		return nil, fs.failed
	case err != nil:
		return nil, err
	case m.Size() > maxObjects:
		return nil, fmt.Errorf("more than %d objects", maxObjects)
	}
	return m, fs.guard.keeps(what, weigh(m))
}

// unavailableError is what kustomize says of a part of it that Flux, and this program, turn off. Its own words name flags
// that neither of them has.
type unavailableError struct {
	error
	hint string
}

func (e *unavailableError) Unwrap() error { return e.error }

// Hint says what to do instead.
func (e *unavailableError) Hint() string { return e.hint }

func unavailable(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "must specify --enable-helm"):
		return &unavailableError{err, "Flux runs no helm in a kustomization: write a HelmRelease instead of helmCharts"}
	case strings.Contains(text, "plugins disabled"):
		return &unavailableError{err, "Flux runs no plugins in a kustomization: commit what they make"}
	}
	return err
}

// originOf reads the annotation that names the file, and removes it unless the kustomization asks for it.
func originOf(content map[string]any, dir string, keep bool) string {
	meta, _ := content["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, _ := annotations[originAnnotation].(string)
	var origin struct {
		Path         string `json:"path"`
		ConfiguredIn string `json:"configuredIn"`
	}
	if err := sigsyaml.Unmarshal([]byte(text), &origin); err != nil {
		return ""
	}
	if !keep && annotations != nil {
		delete(annotations, originAnnotation)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	switch {
	case origin.Path != "":
		return join(dir, origin.Path)
	case origin.ConfiguredIn != "":
		return join(dir, origin.ConfiguredIn)
	}
	return ""
}

// plainError shows paths as the user knows them.
func (r *repository) plainError(err error) error {
	if _, ok := errors.AsType[*panicError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*exhaustedError](err); ok {
		return err
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if shown := r.display(r.root); shown != r.root {
		prefix := shown + string(filepath.Separator)
		if shown == "." {
			prefix = ""
		}
		text = strings.ReplaceAll(text, r.root+string(filepath.Separator), prefix)
		text = strings.ReplaceAll(text, r.root, shown)
	}
	if len(text) > maxMessage {
		text = text[:maxMessage] + " …"
	}
	return errors.New(text)
}

// maxMessage bounds the message of a build. kustomize quotes whole objects.
const maxMessage = 1000

// clone copies a kustomization that is about to be changed.
func clone(k *types.Kustomization) (*types.Kustomization, error) {
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	c := &types.Kustomization{}
	return c, json.Unmarshal(text, c)
}
