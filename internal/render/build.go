package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/kustomize"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// built is an object in the output of kustomize, with the file that it comes from.
type built struct {
	content map[string]any
	file    string         // absolute; the kustomization file for a generated object
	shown   map[string]any // the part of it that may be shown, nil for all
}

func visibleOf(o built) map[string]any {
	if o.shown != nil {
		return o.shown
	}
	return o.content
}

// build runs kustomize on a directory with the given kustomization instead of its kustomization file.
func (r *repository) build(ctx context.Context, dir, file string, k *types.Kustomization, replace map[string][]byte) buildResult {
	uses := &patchUses{sealed: len(replace) > 0}
	objects, err := r.buildUnder(ctx, nil, uses, dir, file, k, replace)
	return buildResult{objects, uses.list, err}
}

// buildUnder is build with the values of Secrets under a veil (nil shows them). It records in uses the patches, unless uses is nil.
func (r *repository) buildUnder(ctx context.Context, v *veil, uses *patchUses, dir, file string, k *types.Kustomization, replace map[string][]byte) ([]built, error) {
	files := map[string][]byte{}
	for path, text := range replace {
		if !manifest.IsKustomizationFile(path) {
			files[path] = text
		}
	}
	fs := &confined{ctx: ctx, repo: r, replace: files, what: r.display(file)}
	fs.lacking = r.lacks(dir, k)
	fs.forgive(dir, k)
	fs.veil = v
	if uses != nil && !fs.lacking { // the target of a patch may be left out
		fs.patched = uses.add
	}
	objects, err := r.run(fs, dir, file, k)
	if err == nil {
		return objects, nil
	}
	if ctx.Err() == nil { // otherwise the build may still run
		files[file], _ = json.Marshal(k)
		fs.remember(file)
	}
	text := advised(err, r.plainError(fs.unquoted(err)))
	if address, ok := errors.AsType[*kustomize.AddressError](err); ok {
		text = fmt.Errorf("%s: %s: %w", address.Field, redacted(address.Address), address)
	}
	if entry, ok := errors.AsType[*kustomize.EntryError](err); ok {
		return nil, r.placed(entry, text, !fs.lacking)
	}
	return nil, text
}

// placed returns the error of a kustomization entry with the position of the mistake. written reports whether the entries are
// still those of the kustomization file; otherwise the position is the file.
func (r *repository) placed(entry *kustomize.EntryError, err error, written bool) error {
	d := r.directory(filepath.Dir(entry.File))
	if patch := entry.Field == "patches"; entry.Path != "" && written && (patch || d == nil) {
		at := manifest.Excerpt{Pos: manifest.Pos{File: r.display(entry.Path)}}
		if text, readErr := r.read(entry.Path); patch && readErr == nil {
			at = manifest.FirstDocument(at.Pos.File, text).Excerpt()
		}
		return &placedError{at, err}
	} else if patch && (d == nil || entry.Index >= len(d.kustomization.Patches)) {
		if d != nil {
			entry.Index -= len(d.kustomization.Patches)
		}
		return &specPatchError{entry.Index, err}
	}
	if d == nil {
		return err
	}
	at := manifest.Excerpt{Pos: manifest.Pos{File: d.object.Pos.File}}
	if entry.Field != "" && written {
		at = d.object.Excerpt(d.fieldOf(entry.Field, entry.Index)...)
	}
	return &placedError{at, err}
}

type specPatchError struct {
	index int
	error
}

func (e *specPatchError) Unwrap() error { return e.error }

// run builds a directory and decodes the resulting objects.
func (r *repository) run(fs *confined, dir, file string, k *types.Kustomization) ([]built, error) {
	k, err := fs.veil.overKustomization(file, k)
	if err != nil {
		return nil, err
	}
	b := &kustomize.Build{Source: fs, Budget: r.budget, What: fs.what, Patched: fs.patched}
	found, err := b.Run(fs.ctx, dir, file, k)
	if err != nil && fs.ctx.Err() == nil && fs.failed != nil {
		return nil, fs.failed
	}
	if err != nil {
		return nil, err
	}
	objects := make([]built, len(found))
	for i, o := range found {
		content, err := o.Content()
		if err != nil {
			return nil, err
		}
		objects[i] = built{content: content, file: o.File}
		if written := r.written(o.File, content); written != nil {
			_, _ = manifest.Shared(content, written.Content)
		}
	}
	return objects, nil
}

// written returns the object in a file that a built object comes from, nil for a generated object.
func (r *repository) written(file string, content map[string]any) *manifest.Object {
	if file == "" || manifest.IsKustomizationFile(file) {
		return nil
	}
	f, err := r.file(file)
	if err != nil {
		return nil
	}
	apiVersion, kind, _, name := manifest.Identify(content)
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	return f.Origin(group, kind, name)
}

// advised returns the text of an error, with a hint if the remedy is known. kustomize itself names flags that neither Flux nor
// this program has.
func advised(err, text error) error {
	switch {
	case errors.Is(err, kustomize.ErrNoHelm):
		return &finding.Problem{Text: text.Error(), Advice: "Flux does not run helm in a kustomization: write a HelmRelease instead of helmCharts", Err: kustomize.ErrNoHelm}
	case types.IsErrOnlyBuiltinPluginsAllowed(err):
		return finding.WithHint(text, "Flux does not run plugins in a kustomization: commit the objects that they generate")
	case errors.As(err, new(*kustomize.DuplicateError)):
		return finding.WithHint(text, "two entries contain this object: remove one, or change the other with patches")
	}
	return text
}

// plainError returns an error on one line, with paths as the user knows them.
func (r *repository) plainError(err error) error {
	if _, ok := errors.AsType[*kustomize.PanicError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*kustomize.ExhaustedError](err); ok {
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

// maxMessage is the limit, in bytes, of the message of a build. kustomize quotes whole objects.
const maxMessage = 1000

// buildResult holds the result of a build. It is shared: copy before changing it.
type buildResult struct {
	objects []built
	patches []patchUse // with targets
	err     error
}

// lacks reports whether a kustomization includes something remote, which is left out.
func (r *repository) lacks(dir string, k *types.Kustomization) bool {
	c := newClosure()
	if d := r.directory(dir); d != nil {
		_ = c.add(r, dir, nil) // its errors are errors of the build
	}
	for _, entry := range append(k.Resources[:len(k.Resources):len(k.Resources)], k.Components...) {
		if path, err := r.within(join(dir, entry)); err == nil && r.isDirectory(path) {
			_ = c.add(r, path, []string{dir})
		}
	}
	return len(c.remote) > 0
}

type buildError struct {
	of  string // the kustomization file, "" for that of a Kustomization of Flux
	at  manifest.Excerpt
	err error
}

// newBuildError returns the error of a kustomization file, at the known position or at the whole file.
func newBuildError(file string, err error) *buildError {
	if placed := deepestMistake(err); placed != nil {
		return &buildError{file, placed.at, placed.err}
	}
	return &buildError{file, manifest.Excerpt{Pos: manifest.Pos{File: file}}, err}
}

// deepestMistake returns the innermost placed error in an error, nil if there is no placed error.
func deepestMistake(err error) *placedError {
	var found *placedError
	for placed, ok := errors.AsType[*placedError](err); ok; placed, ok = errors.AsType[*placedError](placed.err) {
		found = placed
	}
	return found
}

func (e *buildError) Error() string {
	if e.at.Pos.File != "" {
		return e.at.Pos.String() + ": " + e.text()
	}
	return e.text()
}

func (e *buildError) text() string { return "kustomize build failed: " + e.err.Error() }

func (e *buildError) Unwrap() error { return e.err }

// Excerpt returns the line of the file.
func (e *buildError) Excerpt() manifest.Excerpt { return e.at }

// NotBuilt marks the error as a failed build.
func (e *buildError) NotBuilt() bool { return true }
