// Package render turns directories into the objects that Flux would apply: it builds kustomization files and Flux
// Kustomizations, decrypts what SOPS encrypted, and substitutes variables. It opens no connection, runs no program, and
// reads nothing outside of the repositories that the input is in.
package render

import (
	"context"
	"os"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

// Options are the choices of one run.
type Options struct {
	// Variables are substituted everywhere, and win over those of a Kustomization.
	Variables map[string]string
	// Unset says what becomes of a variable without a value.
	Unset Unset
	// Tolerant leaves a variable as it is written that a ConfigMap or Secret may set which is not in the input.
	Tolerant bool
	// Sources are directories that stand in for sources.
	Sources []Source
	// Admit answers what the API server would say to a Kustomization, nil for nothing.
	Admit func(*manifest.Object) error
	// Namespace is that of plain manifests without one.
	Namespace string
	// Cluster is the one that is built, from 1, if the input holds several that cannot be one. 0 builds them as one.
	Cluster int
	// SkipDirs are directories that are no part of any repository.
	SkipDirs []string
	// Getenv reads the environment, for keys.
	Getenv func(string) string
}

// Source is a directory in place of a source. An empty namespace matches all.
type Source struct{ Kind, Namespace, Name, Dir string }

// Notice is something that a run should say: a finding if it has a code, else a line.
type Notice struct {
	Code   finding.Code
	Object *manifest.Object // that it is about, or in whose text it is; nil for none
	Place  manifest.Excerpt
	Text   string
	Hint   string
	Debug  bool
}

// Renderer builds kustomizations and opens objects for one run.
type Renderer struct {
	o       Options
	ctx     context.Context
	ambient func() *sops.Keys
	plain   *variables

	clusters []string

	mu      sync.Mutex
	notices []Notice
	judged  []*manifest.Object
	errs    []error
	unset   map[string]*unsetNote // variables that became empty, by name

	rejections []Rejection
	used       map[Source]bool
	partial    bool // something is elsewhere
}

// New is a renderer of one run. The context ends what it does.
func New(ctx context.Context, o Options) *Renderer {
	r := &Renderer{o: o, ctx: ctx, used: map[Source]bool{}, unset: map[string]*unsetNote{}}
	r.ambient = sync.OnceValue(func() *sops.Keys {
		keys, errs := ambientKeys(ctx, o.Getenv)
		for _, err := range errs {
			r.notice(Notice{Code: finding.UnusableKeys, Text: "SOPS keys: " + err.Error()})
		}
		return keys
	})
	if len(o.Variables) > 0 {
		r.plain = newVariables(o.Unset)
		r.plain.set(o.Variables, false)
	}
	return r
}

// Rejection is a Kustomization that the API server would not store, and why.
type Rejection struct {
	Object *manifest.Object
	Err    error
}

// Rejections are what was not told yet.
func (r *Renderer) Rejections() []Rejection {
	list := r.rejections
	r.rejections = nil
	return list
}

// Notices are what was not told yet.
func (r *Renderer) Notices() []Notice {
	r.tellUnset()
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.notices
	r.notices = nil
	return list
}

// Judged are the Kustomizations and kustomization files whose comments count.
func (r *Renderer) Judged() []*manifest.Object {
	return slices.DeleteFunc(slices.Clone(r.judged), func(o *manifest.Object) bool { return o.Aside })
}

// Used tells whether a source stood in for that of a Kustomization.
func (r *Renderer) Used(s Source) bool { return r.used[s] }

// Incomplete tells whether a part of the input is elsewhere, so that nobody can say what is not in it.
func (r *Renderer) Incomplete() bool { return r.partial }

func (r *Renderer) notice(n Notice) {
	if n.Object != nil && n.Object.Aside {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.notices, n) {
		r.notices = append(r.notices, n)
	}
}

// warn tells of a finding at a field of an object.
func (r *Renderer) warn(code finding.Code, o *manifest.Object, text, hint string, path ...any) {
	r.notice(Notice{Code: code, Object: o, Place: o.Excerpt(path...), Text: text, Hint: hint})
}

// warnAt is warn without the line: it may hold more than is to be told.
func (r *Renderer) warnAt(code finding.Code, o *manifest.Object, text, hint string, pos manifest.Pos) {
	r.notice(Notice{Code: code, Object: o, Place: manifest.Excerpt{Pos: pos}, Text: text, Hint: hint})
}

// Open makes an object ready that was read as it lies in a file.
func (r *Renderer) Open(o *manifest.Raw) (map[string]any, error) {
	content := o.Value
	if sealed(content) {
		d := &decrypter{keys: r.ambient()}
		opened, err := d.raw(o)
		if err != nil {
			return nil, err
		}
		content = opened
		o.Confide(secretsIn(o.Value, opened))
	}
	if r.plain == nil {
		return content, nil
	}
	s, err := r.plain.object(r.ctx, content)
	if err != nil {
		return nil, err
	}
	r.emptied(o.Object, s.empty, "")
	return s.content, nil
}

// sealed tells whether any of an object may be encrypted. Most are not, and nothing is paid for them.
func sealed(content map[string]any) bool {
	if sops.Encrypted(content) {
		return true
	}
	if kind, _ := content["kind"].(string); kind != "Secret" {
		return false
	}
	data, _ := content["data"].(map[string]any)
	return len(data) > 0
}

// Build builds what is in the directories of an input.
func (r *Renderer) Build(_ context.Context, in *manifest.Input) (build *manifest.Build) {
	// A bug, here or in a library, must not cost the plain files theirs.
	defer func() {
		if p := recover(); p != nil {
			r.notice(Notice{Text: string(debug.Stack()), Debug: true})
			build = &manifest.Build{Errors: append(r.errs, &buildError{err: &panicError{value: p}})}
		}
	}()
	b := &builder{Renderer: r, in: in, byPath: map[string]*manifest.File{}, claimed: map[string]bool{}, named: map[string]string{},
		kustomizations: map[string]*manifest.Object{}, found: map[string]*datum{}, promises: map[string]string{}, homes: map[string]*repository{}}
	b.prepare()
	b.pass()
	b.roots()
	b.settle()
	b.rest()
	b.tellDependencies()
	return b.result()
}

// prepare finds out where everything is.
func (b *builder) prepare() {
	for _, dir := range b.in.Roots {
		if real, err := absolute(dir); err == nil {
			b.named[real] = dir
		}
	}
	b.display = displays(b.named)
	for _, dir := range b.o.SkipDirs {
		if info, err := os.Stat(dir); err == nil {
			b.skip = append(b.skip, info)
		}
	}
	for _, f := range b.in.Files {
		if !f.Walked {
			continue
		}
		if real, err := absolute(f.Name); err == nil {
			b.byPath[real] = f
			b.paths = append(b.paths, real)
		}
	}
}

// repository is the one that a directory is in.
func (b *builder) repository(dir string) *repository {
	r, ok := b.homes[dir]
	if !ok {
		r = b.at(repositoryRoot(dir, b.rootOf(dir)))
		b.homes[dir] = r
	}
	return r
}

// at is the repository with a root.
func (b *builder) at(root string) *repository {
	for _, r := range b.repositories {
		if r.root == root {
			return r
		}
	}
	r := &repository{root: root, rules: rulesOf(root), display: b.display, skip: b.skip, dirs: map[string]*directory{}, parsed: b.parsed(), plugins: map[string][]byte{}}
	b.repositories = append(b.repositories, r)
	return r
}

// rootOf is the directory that was named and that a path is in.
func (b *builder) rootOf(path string) string {
	best := ""
	for real := range b.named {
		if inside(real, path) && (best == "" || len(real) < len(best)) {
			best = real
		}
	}
	if best == "" {
		return path
	}
	return best
}

func (b *builder) parsed() map[string]*manifest.File {
	files := make(map[string]*manifest.File, len(b.byPath))
	for path, f := range b.byPath {
		files[path] = f
	}
	return files
}

// result is what became of the files.
func (b *builder) result() *manifest.Build {
	claimed := map[*manifest.File]bool{}
	for path := range b.claimed {
		if f := b.byPath[path]; f != nil && !b.spared[path] {
			claimed[f] = true
		}
	}
	b.tellNamespaces(claimed)
	return &manifest.Build{Claimed: claimed, Objects: b.objects, Errors: b.errs}
}

// tellNamespaces warns of plain manifests without a namespace: in a repository this is seldom meant.
func (b *builder) tellNamespaces(claimed map[*manifest.File]bool) {
	for _, f := range b.in.Files {
		if !f.Walked || f.Aside() || claimed[f] {
			continue
		}
		for _, o := range f.Objects() {
			if o.NoNamespace() && o.Kind != "Secret" && o.Kind != "ConfigMap" && o.Kind != "ServiceAccount" {
				b.warnNamespace(o, o.Namespace)
			}
		}
	}
}

func (b *builder) warnNamespace(o *manifest.Object, taken string) {
	b.warn(finding.NoNamespace, o, "no namespace, and no kustomization gives it one: taken to be in "+taken, "", "metadata", "name")
}
