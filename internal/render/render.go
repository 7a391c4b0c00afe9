// Package render turns directories into the objects that Flux would apply: it builds kustomization files and Flux
// Kustomizations, decrypts files that SOPS encrypted, and substitutes variables. It opens no connection, runs no program, and
// reads no files outside of the repositories of the input.
package render

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// Options are the choices of one run.
type Options struct {
	// Nearest adds passed files that no cluster applies to the nearest cluster instead of to each.
	Nearest bool
	// Variables are substituted everywhere, and override those of a Kustomization.
	Variables map[string]string
	// Unset selects the treatment of a variable without a value.
	Unset Unset
	// Tolerant keeps a variable as it is written if a ConfigMap or Secret outside of the input may set it.
	Tolerant bool
	// Sources are directories that replace sources.
	Sources []Source
	// Fetch gets the trees of missing sources. Its arguments include the objects of the cluster that are known so far. It returns
	// the sources that are available now, with their directory, and those that could not be fetched, without one. Files are shown
	// as KIND/NAMESPACE/NAME/FILE. Sources has precedence. Fetch may be nil.
	Fetch func(*Cluster, []Need, *manifest.Build) []Source
	// Admit returns the error with which the API server refuses a Kustomization. Admit may be nil.
	Admit func(*manifest.Object) error
	// Namespace is the namespace of plain manifests without one.
	Namespace string
	// SkipDirs are directories that do not belong to a repository.
	SkipDirs []string
	// Secrets records the values of Secrets and decrypted values, which must not be shown.
	Secrets *conceal.Values
	// Untrusted does not use the keys of the user: the manifests are a stranger's.
	Untrusted bool
	// Getenv reads the environment, for keys.
	Getenv func(string) string
}

// Notice is a message of a run: a finding if it has a code, otherwise a log line.
type Notice struct {
	Code    finding.Code
	Object  *manifest.Object // that it is about, or whose text it quotes; may be nil
	Excerpt manifest.Excerpt
	Text    string
	Hint    string
	Debug   bool
}

// Rejection is a Kustomization that the API server would refuse, with the error.
type Rejection struct {
	Object *manifest.Object
	Err    error
}

// patchKey identifies an entry of patches, in a kustomization file or a Kustomization. An entry that another object added may have
// another target.
type patchKey struct {
	at     string
	index  int
	target string
}

// notedPatch is a patch with its effect in all builds of the run.
type notedPatch struct {
	fitted bool
	notice Notice
}

// Renderer builds the kustomizations of one run. All clusters share its caches of the input. New makes it for an Input, which
// must not change until the run ends.
type Renderer struct {
	o       Options
	ctx     context.Context
	in      *manifest.Input
	ambient func() *sops.Keys
	plain   *variables
	budget  *kustomize.Budget

	disk    *disk
	named   map[string]string // directories of the input: real path → as it was written
	display func(string) string
	skip    []os.FileInfo
	byPath  map[string]*manifest.File
	paths   []string // of the files, in the order of the input

	repositories []*repository
	homes        map[string]*repository // of directories
	index        *index
	plan         *plan
	checkouts    map[string]*checkout // by the root of the repository
	opened       map[*manifest.Object]manifest.Opened
	unsetOf      map[*manifest.Object][]string // their variables without a value
	builds       map[string]buildResult
	patchNotes   map[patchKey]*notedPatch     // with targets
	made         map[*manifest.Object]*output // of ArtifactGenerators, with the currently known sources
	listings     map[string]*generate.Tree    // of directories that are sources of generators
	specs        map[*manifest.Object]*swv1.ArtifactGeneratorSpec

	here        []Source                      // this repository, by the sources that a cluster begins with and no file defines
	syncs       map[string][]*manifest.Object // Kustomizations that an operator makes, by the real path of the file with the sync
	own         map[string]bool               // sources that the input begins with, by kind, namespace and name
	others      map[string]bool               // sources of other repositories that an operator makes, by the same
	ownURLs     []string                      // the names of the repositories in their URLs
	ownBranches []string

	passed    map[string]bool // real paths of the passed files, nil if the input is about all files
	concerned map[string]bool // the files whose objects the input is about
	reshaped  map[string]bool // those of them with objects that a passed file patches

	reached map[string]bool // real paths of the files that a cluster built
	notices []Notice        // about the user's own keys, and about checkouts

	shown   map[string]string // display names of directories: those of the input, and of fetched sources
	arrived *arrivals         // of the current cluster
	outputs int               // of generators, of the whole run
}

// New returns a renderer for the input of one run. It stops when the context ends.
func New(ctx context.Context, in *manifest.Input, o Options) *Renderer {
	ctx, end := context.WithCancelCause(ctx)
	r := &Renderer{o: o, ctx: ctx, in: in, budget: kustomize.NewBudget(end), disk: newDisk(), byPath: map[string]*manifest.File{}, named: map[string]string{}, homes: map[string]*repository{}, checkouts: map[string]*checkout{},
		opened: map[*manifest.Object]manifest.Opened{}, unsetOf: map[*manifest.Object][]string{}, reached: map[string]bool{}, own: map[string]bool{}, others: map[string]bool{}, builds: map[string]buildResult{}, patchNotes: map[patchKey]*notedPatch{}, made: map[*manifest.Object]*output{}, listings: map[string]*generate.Tree{}, specs: map[*manifest.Object]*swv1.ArtifactGeneratorSpec{}}
	r.ambient = sync.OnceValue(func() *sops.Keys {
		if o.Untrusted {
			return &sops.Keys{}
		}
		keys, errs := ambientKeys(ctx, o.Getenv)
		for _, err := range errs {
			r.notices = append(r.notices, Notice{Code: finding.UnusableKeys, Text: "SOPS keys: " + err.Error()})
		}
		return keys
	})
	if len(o.Variables) > 0 {
		r.plain = newVariables(o.Unset, r.budget)
		r.plain.set(o.Variables, public)
	}
	r.prepare()
	return r
}

func (r *Renderer) prepare() {
	for _, dir := range r.in.Roots {
		if real, err := absolute(dir); err == nil {
			r.named[real] = dir
		}
	}
	r.shown, r.arrived = maps.Clone(r.named), newArrivals()
	r.display = displays(r.shown)
	for _, dir := range r.o.SkipDirs {
		if info, err := os.Stat(dir); err == nil {
			r.skip = append(r.skip, info)
		}
	}
	for _, f := range r.in.Files {
		if real, err := r.disk.absolute(f.Name); err == nil && f.Name != "" {
			r.disk.hold(real, f)
			r.byPath[real] = f
			r.paths = append(r.paths, real)
		}
	}
	r.index = newIndex(r)
}

func (r *Renderer) repository(dir string) *repository {
	home, ok := r.homes[dir]
	if !ok {
		home = r.at(cmp.Or(r.disk.repository(dir), r.rootOf(dir)))
		r.homes[dir] = home
	}
	return home
}

func (r *Renderer) at(root string) *repository {
	for _, known := range r.repositories {
		if known.root == root {
			return known
		}
	}
	home := r.newRepository(root)
	r.repositories = append(r.repositories, home)
	return home
}

func (r *Renderer) newRepository(root string) *repository {
	home := &repository{ctx: r.ctx, root: root, display: r.display, disk: r.disk, skip: r.skip, dirs: map[string]*directory{}, parsed: maps.Clone(r.byPath), budget: r.budget,
		ignored: map[string]*tree.Rules{}, ignores: map[string]bool{}}
	home.rules = sync.OnceValue(home.rootRules)
	return home
}

func (r *Renderer) rootOf(path string) string {
	best := ""
	for real := range r.named {
		if inside(real, path) && (best == "" || len(real) < len(best)) {
			best = real
		}
	}
	if best == "" {
		return path
	}
	return best
}

// buildOnce runs a build, or returns the result of an earlier one with the same arguments: clusters share builds.
func (r *Renderer) buildOnce(repo *repository, dir, file string, k *types.Kustomization, replace map[string][]byte) buildResult {
	text, err := json.Marshal(k)
	if err != nil {
		return buildResult{err: err}
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q", dir, file, text)
	for _, path := range slices.Sorted(maps.Keys(replace)) {
		_, _ = fmt.Fprintf(h, " %q %q", path, replace[path])
	}
	key := string(h.Sum(nil))
	known, ok := r.builds[key]
	if !ok {
		known = repo.build(r.ctx, dir, file, k, replace)
		r.builds[key] = known
	}
	return known
}

func newIndex(r *Renderer) *index {
	x := &index{sources: map[string][]placed{}, data: map[string][]placed{}, generators: map[string][]placed{}, sourcePaths: map[string][]string{}}
	for _, path := range r.paths {
		f := r.byPath[path]
		for _, o := range f.Kustomizations() {
			key := sourceRef(o).key()
			x.sourcePaths[key] = append(x.sourcePaths[key], manifest.At[string](o.Content, "spec", "path"))
		}
		for _, o := range f.Objects() {
			switch {
			case o.Group() == manifest.SourceGroup:
				key := datumKey(o.Kind, o.Namespace, o.Name)
				x.sources[key] = append(x.sources[key], placed{o, path})
			case isGenerator(o):
				x.artifactGenerators = append(x.artifactGenerators, placed{o, path})
			case o.Group() == "":
				key := datumKey(o.Kind, o.Namespace, o.Name)
				x.data[key] = append(x.data[key], placed{o, path})
			}
		}
		for _, m := range f.Generators() {
			key := datumKey(m.Generates.Kind, m.Generates.Namespace, m.Generates.Name)
			x.generators[key] = append(x.generators[key], placed{m.Object, path})
		}
	}
	return x
}

// Cluster is a part of the input that can be one cluster. A repository may have several: then a Kustomization may have several
// definitions, one for each cluster. The Renderer makes the Cluster, which does not change. But Build uses the Renderer's caches:
// build the clusters of one Renderer one after the other.
type Cluster struct {
	// Dir is the directory of the cluster, empty without one.
	Dir string

	r       *Renderer
	dirs    []string // directories of its own origins
	own     []int    // origins that are in this cluster only
	origins []int
	defined map[string]string // the specs of the Kustomizations of its own origins, by name
	claims  map[string]bool   // files that its origins lead to, nil for all
	others  []*Cluster        // the clusters that share the input

	starts []int // nodes
}

// HasOthers reports whether the cluster shares the input with other clusters, also if the passed files are not part of them.
func (c *Cluster) HasOthers() bool { return len(c.others) > 1 }

// foreign reports whether a file belongs to other clusters only, and is not built here. A file that no cluster builds belongs
// to the cluster whose directory contains it.
func (c *Cluster) foreign(path string) bool {
	switch {
	case c.claims == nil, c.claims[path]:
		return false
	case c.r.plan.claimed[path]:
		return true
	}
	return !c.contains(path) && slices.ContainsFunc(c.others, func(other *Cluster) bool { return other.contains(path) })
}

// begunByOther reports whether another cluster of the input begins with a node.
func (c *Cluster) begunByOther(node int) bool {
	return slices.ContainsFunc(c.others, func(other *Cluster) bool { return other != c && slices.Contains(other.own, node) })
}

func (c *Cluster) contains(path string) bool {
	return slices.ContainsFunc(c.dirs, func(dir string) bool { return inside(dir, path) })
}

// Exhausted returns the error of a build that exceeded its memory or time, usually nil. The code that it runs cannot be
// stopped, so the program should end soon.
func (c *Cluster) Exhausted() error { return c.r.budget.Failure() }
