// Package render turns directories into the objects that Flux would apply: it builds kustomization files and Flux
// Kustomizations, decrypts files that SOPS encrypted, and substitutes variables. It opens no connection, runs no program, and
// reads no files outside of the repositories of the input.
package render

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"sync"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/file"
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

// Source is a directory that replaces a source, or only the source. An empty namespace matches all.
type Source struct{ Kind, Namespace, Name, Dir string }

func (s Source) key() string { return datumKey(s.Kind, s.Namespace, s.Name) }

// sourceRef returns the source that a Kustomization names.
func sourceRef(o *manifest.Object) Source {
	ref := func(name string) string { return manifest.At[string](o.Content, "spec", "sourceRef", name) }
	return Source{Kind: ref("kind"), Namespace: cmp.Or(ref("namespace"), o.Namespace), Name: ref("name")}
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

// Rejection is a Kustomization that the API server would refuse, with the error.
type Rejection struct {
	Object *manifest.Object
	Err    error
}

// Exhausted returns the error of a build that exceeded its memory or time, usually nil. The code that it runs cannot be
// stopped, so the program should end soon.
func (c *Cluster) Exhausted() error { return c.r.budget.Failure() }

func (b *builder) notice(n Notice) {
	if n.Object != nil && n.Object.ReferenceOnly {
		return
	}
	if !slices.Contains(b.notices, n) {
		b.notices = append(b.notices, n)
	}
}

func (b *builder) warn(code finding.Code, o *manifest.Object, text, hint string, path ...any) {
	b.notice(Notice{Code: code, Object: o, Excerpt: o.Excerpt(path...), Text: text, Hint: hint})
}

// warnAt is warn without the line, which may contain text that must not be shown.
func (b *builder) warnAt(code finding.Code, o *manifest.Object, text, hint string, pos manifest.Pos) {
	b.notice(Notice{Code: code, Object: o, Excerpt: manifest.Excerpt{Pos: pos}, Text: text, Hint: hint})
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
		root, known := file.Repository(dir)
		if !known {
			root = r.rootOf(dir)
		}
		home = r.at(root)
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

// warnNamespaces warns of plain manifests without a namespace: in a repository this is rarely intended.
func (b *builder) warnNamespaces(claimed map[*manifest.File]bool) {
	for _, f := range b.in.Files {
		if !f.Walked || f.ReferenceOnly() || claimed[f] {
			continue
		}
		for _, o := range f.Objects() {
			if o.NoNamespace() && o.Kind != "Secret" && o.Kind != "ConfigMap" && o.Kind != "ServiceAccount" && o.Kind != "Namespace" {
				b.warnNamespace(o, o.Namespace)
			}
		}
	}
}

func (b *builder) warnNamespace(o *manifest.Object, taken string) {
	b.warn(finding.NoNamespace, o, "no namespace, and no kustomization gives it one: taken to be in "+taken, "", "metadata", "name")
}
