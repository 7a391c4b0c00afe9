package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

type want int

const (
	anything want = iota
	files
	directories
)

// pathResolver goes through the paths of one kustomization. The first mistake is kept.
type pathResolver struct {
	d   *directory
	r   *repository
	err error
}

func (p *pathResolver) fail(err error, path ...any) {
	if p.err == nil {
		p.err = &placedError{p.d.object.Excerpt(path...), err}
	}
}

type placedError struct {
	at  manifest.Excerpt
	err error
}

func (e *placedError) Error() string { return e.at.Pos.String() + ": " + e.err.Error() }

func (e *placedError) Unwrap() error { return e.err }

// deepestMistake is the mistake in a file that an error comes from, nil if that is not known.
func deepestMistake(err error) *placedError {
	var found *placedError
	for placed, ok := errors.AsType[*placedError](err); ok; placed, ok = errors.AsType[*placedError](placed.err) {
		found = placed
	}
	return found
}

// missingEntry finds out what else an entry may mean, from what is in the directory that it leads to.
func (p *pathResolver) missingEntry(entry, at string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return plainPathError(err)
	}
	list, _ := p.r.readDir(filepath.Dir(at)) // without it there is nothing to propose
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	near, ok := finding.Nearest(filepath.Base(at), names)
	if ok {
		dir, _ := path.Split(entry)
		near = dir + near
	}
	missing := &finding.Problem{Err: plainPathError(err)}
	if near != "" {
		missing.Advice = fmt.Sprintf("did you mean %s?", near)
	}
	return missing
}

func (p *pathResolver) list(field string, entries []string, w want) []string {
	var kept []string
	for i, entry := range entries {
		if path, ok := p.one(entry, w, field, i); ok {
			kept = append(kept, path)
		}
	}
	return kept
}

// one resolves a path. It answers false for one that is left out.
func (p *pathResolver) one(entry string, w want, field ...any) (string, bool) {
	name := fieldName(field)
	if entry == "" {
		p.fail(fmt.Errorf("%s: an empty path", name), field...)
		return "", false
	}
	if filepath.IsAbs(filepath.FromSlash(entry)) {
		p.fail(fmt.Errorf("%s: %s: an absolute path", name, entry), field...)
		return "", false
	}
	real, err := p.r.within(join(p.d.path, entry))
	if err != nil && looksRemote(entry) {
		p.d.remote = append(p.d.remote, remoteEntry{p.d.object, p.d.object.Position(field...), name, entry})
		return "", false
	}
	if err != nil {
		p.fail(fmt.Errorf("%s: %s: %w", name, entry, p.missingEntry(entry, join(p.d.path, entry), err)), field...)
		return "", false
	}
	dir, err := p.r.isDir(real)
	p.d.entries = append(p.d.entries, entryOf{real, name, entry, slices.Clone(field)})
	switch {
	case err != nil:
		p.fail(fmt.Errorf("%s: %s: %w", name, entry, p.missingEntry(entry, real, err)), field...)
		return "", false
	case dir && w == files:
		p.fail(fmt.Errorf("%s: %s: is a directory", name, entry), field...)
		return "", false
	case !dir && w == directories:
		p.fail(fmt.Errorf("%s: %s: not a directory", name, entry), field...)
		return "", false
	case dir:
		p.d.dirs = append(p.d.dirs, real)
	default:
		p.d.files = append(p.d.files, real)
		if field[0] == "resources" {
			p.d.resources[real] = true
		}
	}
	return relative(entry), true
}

// maxSchema bounds the file of openapi.path: kustomize needs some 70 bytes of memory for each byte of it.
const maxSchema = 5 << 20

// schema is one, for the file of openapi.path.
func (p *pathResolver) schema(entry string) (string, bool) {
	path, ok := p.one(entry, files, "openapi", "path")
	if !ok {
		return "", false
	}
	if data, err := p.r.read(p.d.files[len(p.d.files)-1]); err == nil && len(data) > maxSchema {
		p.fail(fmt.Errorf("openapi.path: %s: larger than %d MiB; kinds that no patch of the build is for can be left out", entry, maxSchema>>20), "openapi", "path")
		return "", false
	}
	return path, true
}

// fieldName is a field as messages name it: resources[2].
func fieldName(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, step)
		}
	}
	return b.String()
}

// looksRemote reports whether an entry is an address, and not a path that does not exist.
func looksRemote(entry string) bool {
	lower := strings.ToLower(entry)
	for _, prefix := range []string{"git::", "git@", "github.com/", "github.com:", "http:", "https:", "ssh:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return strings.Contains(entry, "://") || strings.Contains(entry, "?ref=") || strings.Contains(entry, ".git//")
}

func (p *pathResolver) patches(field string, patches []types.Patch) []types.Patch {
	var kept []types.Patch
	for i, patch := range patches {
		if patch.Path != "" {
			before := len(p.d.files)
			path, ok := p.one(patch.Path, files, field, i, "path")
			if !ok {
				continue
			}
			p.d.sealed = append(p.d.sealed, sealedFile{path: p.d.files[before], shape: patch.Path, patch: true})
			patch.Path = path
		}
		kept = append(kept, patch)
	}
	return kept
}

// merges turns patchesStrategicMerge into patches: a path, or a patch in place.
func (p *pathResolver) merges(entries []types.PatchStrategicMerge) []types.Patch {
	var kept []types.Patch
	for i, entry := range entries {
		if isInline(string(entry)) {
			kept = append(kept, types.Patch{Patch: string(entry)})
			continue
		}
		before := len(p.d.files)
		if path, ok := p.one(string(entry), files, "patchesStrategicMerge", i); ok {
			p.d.sealed = append(p.d.sealed, sealedFile{path: p.d.files[before], shape: string(entry), patch: true})
			kept = append(kept, types.Patch{Path: path})
		}
	}
	return kept
}

// replacements leaves out those of addresses, as everything else that is one.
func (p *pathResolver) replacements(list []types.ReplacementField) []types.ReplacementField {
	var kept []types.ReplacementField
	for i, r := range list {
		if r.Path != "" {
			path, ok := p.one(r.Path, files, "replacements", i, "path")
			if !ok {
				continue
			}
			r.Path = path
		}
		kept = append(kept, r)
	}
	return kept
}

// sources resolves the files of a generator, each perhaps with the key before it.
func (p *pathResolver) sources(entries []string, secret bool, field ...any) []string {
	var kept []string
	for i, entry := range entries {
		key, path, found := strings.Cut(entry, "=")
		if !found {
			key, path = "", entry
		}
		before := len(p.d.files)
		resolved, ok := p.one(path, files, append(slices.Clone(field), i)...)
		if !ok {
			continue
		}
		key = cmp.Or(key, filepath.Base(filepath.FromSlash(path)))
		if secret {
			p.d.sealed = append(p.d.sealed, sealedFile{path: p.d.files[before], shape: key})
		}
		kept = append(kept, key+"="+resolved)
	}
	return kept
}

func (p *pathResolver) envs(entries []string, secret bool, field ...any) []string {
	var kept []string
	for i, entry := range entries {
		before := len(p.d.files)
		resolved, ok := p.one(entry, files, append(slices.Clone(field), i)...)
		if !ok {
			continue
		}
		if secret {
			p.d.sealed = append(p.d.sealed, sealedFile{path: p.d.files[before], shape: entry, env: true})
		}
		kept = append(kept, resolved)
	}
	return kept
}

// plugins resolves generators, transformers and validators: files, directories, or configurations in place.
func (p *pathResolver) plugins(field string, entries []string) []string {
	var kept []string
	for i, entry := range entries {
		if isInline(entry) {
			kept = append(kept, entry)
		} else if path, ok := p.one(entry, anything, field, i); ok {
			kept = append(kept, path)
		}
	}
	return kept
}

// isInline reports whether an entry is an inline configuration, and not a path.
func isInline(entry string) bool { return strings.ContainsAny(entry, "\n{") }

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
