package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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

// pathResolver resolves the paths of one kustomization. It keeps the first error.
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

// missingEntry adds a hint to the error of a missing entry: the most similar name in the same directory.
func (p *pathResolver) missingEntry(entry, at string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return plainPathError(err)
	}
	list, _ := p.r.readDir(filepath.Dir(at)) // without the list there is no hint
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

// kept returns the entries for which a function returns true. The function may change them.
func kept[T any](entries []T, keeps func(i int, entry *T) bool) []T {
	var list []T
	for i, entry := range entries {
		if keeps(i, &entry) {
			list = append(list, entry)
		}
	}
	return list
}

func (p *pathResolver) list(field string, entries []string, w want) []string {
	return kept(entries, func(i int, entry *string) bool { return p.one(entry, w, field, i) })
}

// one resolves the path of an entry. It returns false if the entry is left out.
func (p *pathResolver) one(path *string, w want, field ...any) bool {
	name, entry := manifest.Dotted(field...), *path
	if entry == "" {
		p.fail(fmt.Errorf("%s: an empty path", name), field...)
		return false
	}
	if filepath.IsAbs(filepath.FromSlash(entry)) {
		p.fail(fmt.Errorf("%s: %s: an absolute path", name, entry), field...)
		return false
	}
	real, err := p.r.within(join(p.d.path, entry))
	if err != nil && looksRemote(entry) {
		p.d.remote = append(p.d.remote, remoteEntry{p.d.object, p.d.object.Position(field...), name, entry})
		return false
	}
	if err != nil {
		p.fail(fmt.Errorf("%s: %s: %w", name, entry, p.missingEntry(entry, join(p.d.path, entry), err)), field...)
		return false
	}
	dir, err := p.r.isDir(real)
	p.d.entries = append(p.d.entries, entryOf{real, name, entry, slices.Clone(field)})
	switch {
	case err != nil:
		p.fail(fmt.Errorf("%s: %s: %w", name, entry, p.missingEntry(entry, real, err)), field...)
		return false
	case dir && w == files:
		p.fail(fmt.Errorf("%s: %s: is a directory", name, entry), field...)
		return false
	case !dir && w == directories:
		p.fail(fmt.Errorf("%s: %s: not a directory", name, entry), field...)
		return false
	case dir:
		p.d.dirs = append(p.d.dirs, real)
	default:
		p.d.files = append(p.d.files, real)
		if field[0] == "resources" {
			p.d.resources[real] = true
		}
	}
	*path = relative(entry)
	return true
}

// maxSchema is the limit, in bytes, of the file of openapi.path: kustomize needs some 70 bytes of memory for each byte of it.
const maxSchema = 5 << 20

// schema resolves the file of openapi.path.
func (p *pathResolver) schema(entry *string) bool {
	name := *entry
	if !p.one(entry, files, "openapi", "path") {
		return false
	}
	if data, err := p.r.read(p.d.files[len(p.d.files)-1]); err == nil && len(data) > maxSchema {
		p.fail(fmt.Errorf("openapi.path: %s: larger than %d MiB; kinds that no patch of the build is for can be left out", name, maxSchema>>20), "openapi", "path")
		return false
	}
	return true
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

// sealable resolves a file that may be encrypted.
func (p *pathResolver) sealable(entry *string, f sealedFile, field ...any) bool {
	before := len(p.d.files)
	if !p.one(entry, files, field...) {
		return false
	}
	f.path = p.d.files[before]
	p.d.sealed = append(p.d.sealed, f)
	return true
}

func (p *pathResolver) patches(field string, patches []types.Patch, in ...any) []types.Patch {
	return kept(patches, func(i int, patch *types.Patch) bool {
		return patch.Path == "" || p.sealable(&patch.Path, sealedFile{shape: patch.Path, patch: true}, append([]any{field, i}, in...)...)
	})
}

// merges turns patchesStrategicMerge into patches: each entry is a path or an inline patch.
func (p *pathResolver) merges(entries []types.PatchStrategicMerge) []types.Patch {
	const field = "patchesStrategicMerge"
	entries = kept(entries, func(i int, entry *types.PatchStrategicMerge) bool {
		text := string(*entry)
		return text != "" || p.one(&text, files, field, i)
	})
	var patches []types.Patch
	for _, entry := range entries {
		if text := string(entry); isInline(text) {
			patches = append(patches, types.Patch{Patch: text})
		} else {
			patches = append(patches, types.Patch{Path: text})
		}
	}
	return p.patches(field, patches)
}

// replacements resolves the paths of replacements, and leaves out remote ones.
func (p *pathResolver) replacements(list []types.ReplacementField) []types.ReplacementField {
	return kept(list, func(i int, r *types.ReplacementField) bool {
		return r.Path == "" || p.one(&r.Path, files, "replacements", i, "path")
	})
}

// sources resolves the files of a generator, each of which may have a key before it.
func (p *pathResolver) sources(entries []string, secret bool, field ...any) []string {
	return kept(entries, func(i int, entry *string) bool {
		key, path, found := strings.Cut(*entry, "=")
		if !found {
			key, path = "", *entry
		}
		key = cmp.Or(key, filepath.Base(filepath.FromSlash(path)))
		ok := p.generated(&path, sealedFile{shape: key}, secret, append(slices.Clone(field), i)...)
		*entry = key + "=" + path
		return ok
	})
}

func (p *pathResolver) envs(entries []string, secret bool, field ...any) []string {
	return kept(entries, func(i int, entry *string) bool {
		return p.generated(entry, sealedFile{shape: *entry, env: true}, secret, append(slices.Clone(field), i)...)
	})
}

// generated resolves a file that a generator reads.
func (p *pathResolver) generated(entry *string, f sealedFile, secret bool, field ...any) bool {
	if secret {
		return p.sealable(entry, f, field...)
	}
	return p.one(entry, files, field...)
}

// plugins resolves generators, transformers and validators: files, directories, or inline configurations.
func (p *pathResolver) plugins(field string, entries []string) []string {
	return kept(entries, func(i int, entry *string) bool { return isInline(*entry) || p.one(entry, anything, field, i) })
}

// isInline reports whether an entry is an inline configuration, not a path.
func isInline(entry string) bool { return strings.ContainsAny(entry, "\n{") }
