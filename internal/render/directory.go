package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

const (
	// maxDepth is the limit of kustomizations that include each other in a chain.
	maxDepth = 100

	// maxIncludes is the limit of includes in a build. Each counts as often as it is included: the number can double at each step.
	maxIncludes = 5000
)

func (r *repository) kustomizationFile(dir string) string {
	for _, name := range manifest.KustomizationFiles() {
		if path := filepath.Join(dir, name); r.isFile(path) {
			return path
		}
	}
	return ""
}

// directory reads the kustomization of a directory, once. It returns nil if the directory has no kustomization file.
func (r *repository) directory(path string) *directory {
	d, ok := known(&r.mu, r.dirs, path)
	if ok {
		return d
	}
	if file := r.kustomizationFile(path); file != "" {
		d = &directory{repo: r, path: path, file: file, object: manifest.FirstDocument(r.display(file), nil), resources: map[string]bool{}}
		if d.err = d.read(r); d.err == nil {
			d.err = d.resolve(r)
		}
	}
	learn(&r.mu, r.dirs, path, d)
	return d
}

func (d *directory) read(r *repository) error {
	real, err := r.within(d.file)
	if err != nil {
		return d.wrong(err)
	}
	if d.text, err = r.read(real); err != nil {
		return d.wrong(err)
	}
	if err := manifest.CheckExpansion(r.display(d.file), d.text); err != nil {
		return err
	}
	d.object = manifest.FirstDocument(r.display(d.file), d.text)
	k := &types.Kustomization{}
	strict := k.Unmarshal(d.text)
	if strict != nil {
		k = new(types.Kustomization)
		err = sigsyaml.Unmarshal(d.text, k)
	}
	switch {
	case strings.HasPrefix(k.APIVersion, manifest.KustomizeGroup+"/"):
		d.flux = true
		return d.wrong(errors.New("a Flux Kustomization in a file of this name: kustomize would read it as a kustomization file"))
	case err != nil:
		return d.unreadable(strict)
	case strict != nil:
		d.unknown = d.unknownFields(strict)
	}
	d.empty = k.CheckEmpty() != nil
	k.FixKustomization()
	d.kustomization = k
	return nil
}

func (d *directory) wrong(err error) error {
	return &placedError{manifest.Excerpt{Pos: manifest.Pos{File: d.object.Pos.File}}, err}
}

// unreadable returns the error of an invalid kustomization file, at the line that is not YAML or has a value that JSON lacks. The
// error of the library would quote the whole file.
func (d *directory) unreadable(err error) error {
	if _, parseErr := manifest.ParseFile(d.object.Pos.File, d.text); parseErr != nil {
		return parseErr
	}
	if _, valueErr := d.object.Raw(); valueErr != nil {
		return valueErr
	}
	return d.wrong(flat(err))
}

// unknownFields places the errors about fields that kustomize does not know. Of unknown nested fields it names the first only.
func (d *directory) unknownFields(err error) []*placedError {
	var fields map[string]any
	_ = sigsyaml.Unmarshal(d.text, &fields) // parsed without errors before
	var unknown []*placedError
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, marshalErr := json.Marshal(map[string]any{name: nil})
		if marshalErr != nil {
			continue
		}
		if err := new(types.Kustomization).Unmarshal(text); err != nil {
			unknown = append(unknown, &placedError{d.object.Excerpt(name), flat(err)})
		}
	}
	if unknown == nil {
		return []*placedError{{manifest.Excerpt{Pos: manifest.Pos{File: d.object.Pos.File}}, flat(err)}}
	}
	return unknown
}

func flat(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// resolve resolves every path of the kustomization. Deprecated fields about which kustomize would write to the process's stderr
// are replaced by their successors.
//
//nolint:staticcheck // people's files hold the deprecated fields
func (d *directory) resolve(r *repository) error {
	k, p := d.kustomization, &pathResolver{d: d, r: r}
	k.Resources = p.list("resources", k.Resources, anything)
	k.Components = p.list("components", k.Components, directories)
	k.Crds = p.list("crds", k.Crds, files)
	k.Configurations = p.list("configurations", k.Configurations, files)
	k.Generators = p.plugins("generators", k.Generators)
	k.Transformers = p.plugins("transformers", k.Transformers)
	k.Validators = p.plugins("validators", k.Validators)
	if path, ok := k.OpenAPI["path"]; ok {
		if p.schema(&path) {
			k.OpenAPI["path"] = path
		} else {
			delete(k.OpenAPI, "path")
		}
	}
	merges, patches, json := p.merges(k.PatchesStrategicMerge), p.patches("patches", k.Patches, "path"), p.patches("patchesJson6902", k.PatchesJson6902, "path")
	k.Patches, d.merges, d.json = slices.Concat(merges, patches, json), len(merges), len(json)
	k.PatchesStrategicMerge, k.PatchesJson6902 = nil, nil
	k.Replacements = p.replacements(k.Replacements)
	for i := range k.ConfigMapGenerator {
		g := &k.ConfigMapGenerator[i]
		g.FileSources = p.sources(g.FileSources, false, "configMapGenerator", i, "files")
		g.EnvSources = p.envs(g.EnvSources, false, "configMapGenerator", i, "envs")
	}
	for i := range k.SecretGenerator {
		g := &k.SecretGenerator[i]
		g.FileSources = p.sources(g.FileSources, true, "secretGenerator", i, "files")
		g.EnvSources = p.envs(g.EnvSources, true, "secretGenerator", i, "envs")
	}
	if len(k.CommonLabels) > 0 {
		k.Labels = append(k.Labels, types.Label{Pairs: k.CommonLabels, IncludeSelectors: true})
		k.CommonLabels = nil
	}
	return p.err
}

func (d *directory) fieldOf(field string, i int) []any {
	switch after := len(d.kustomization.Patches) - d.json; {
	case field != "patches":
	case i < d.merges:
		field = "patchesStrategicMerge"
	case i >= after:
		field, i = "patchesJson6902", i-after
	default:
		i -= d.merges
	}
	return []any{field, i}
}

// closure holds all files that a build of directories reads.
type closure struct {
	of     string // the name of the build
	files  map[string]bool
	dirs   []*directory // in the order in which they are met
	remote []remoteEntry
	links  []manifest.Link // that were left out
	counts map[string]int  // the number of includes of each directory that is complete
}

func newClosure() *closure {
	return &closure{files: map[string]bool{}, counts: map[string]int{}}
}

// add follows a directory and everything that it includes. For a cycle, the error names its directories.
func (c *closure) add(r *repository, path string, way []string) error {
	if i := slices.Index(way, path); i >= 0 {
		var names []string
		for _, w := range append(way[i:len(way):len(way)], path) {
			names = append(names, r.display(w))
		}
		return &endlessError{"cycle: " + strings.Join(names, " includes ")}
	}
	if len(way) > maxDepth {
		return &endlessError{fmt.Sprintf("%s: more than %d kustomizations include each other", r.display(path), maxDepth)}
	}
	if c.counts[path] > 0 {
		return nil
	}
	d := r.directory(path)
	if d == nil {
		return fmt.Errorf("%s: no kustomization file in it", r.display(path))
	}
	c.files[r.original(d.file)] = true
	c.dirs = append(c.dirs, d)
	for _, f := range d.files {
		c.files[f] = true
	}
	var failed error
	count := 1
	for _, sub := range d.dirs {
		if err := c.add(r, sub, append(way[:len(way):len(way)], path)); err != nil && failed == nil {
			failed = err
		}
		count += c.counts[sub]
	}
	if count > maxIncludes && failed == nil {
		failed = &endlessError{fmt.Sprintf("%s: a build would go through more than %d kustomizations", r.display(path), maxIncludes)}
	}
	// Set the count last: a cycle must meet its directory again.
	c.counts[path] = min(count, maxIncludes+1)
	c.remote = append(c.remote, d.remote...)
	if d.err != nil {
		return d.err
	}
	if len(d.unknown) > 0 && len(way) > 0 {
		return d.unknown[0]
	}
	return failed
}

// unparsed returns the parse error that made a build fail, nil if the build failed for another reason.
func (c *closure) unparsed(err error) *manifest.ParseError {
	if parse, ok := errors.AsType[*manifest.ParseError](err); ok {
		return parse
	}
	for _, d := range c.dirs {
		for _, path := range d.files {
			if !d.resources[path] {
				continue
			}
			f, err := d.repo.file(path)
			if err == nil {
				err = f.NoObjects()
			}
			if parse, ok := errors.AsType[*manifest.ParseError](err); ok {
				return parse
			}
		}
	}
	return nil
}

// overlay reports whether a directory includes one outside of it: its namespace may then be set by the program that applies it.
func (c *closure) overlay() bool {
	return slices.ContainsFunc(c.dirs[1:], func(d *directory) bool { return !inside(c.dirs[0].path, d.path) })
}

// carries reports whether a build may copy values of a Secret to another object.
func (c *closure) carries() bool {
	for _, d := range c.dirs {
		k := d.kustomization
		if k != nil && len(k.Replacements)+len(k.Vars)+len(k.Generators)+len(k.Transformers) > 0 { //nolint:staticcheck // people still write vars
			return true
		}
	}
	return false
}
