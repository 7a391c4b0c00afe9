package generate

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
)

// The limits of patterns: each file is matched with each pattern.
const (
	maxDoublestars = 10
	maxSteps       = 5_000_000 // of one artifact: files times patterns
)

type build struct {
	ctx      context.Context
	sources  map[string]*Tree
	artifact *Artifact
	doubts   []Doubt
	steps    int
	op       int
	out      *Tree
}

func (b *build) run() error {
	b.out = NewTree()
	if source := b.sources[b.artifact.Spec.Name]; source != nil {
		b.out = source.clone()
	}
	b.artifact.Tree = b.out
	for i, op := range b.artifact.Spec.Copy {
		b.op = i
		if err := b.copy(op); err != nil {
			if b.ctx.Err() != nil {
				return context.Cause(b.ctx)
			}
			message := fmt.Sprintf("%s build failed: failed to apply copy operations: failed to apply copy operation from '%s' to '%s': %v", b.artifact.Spec.Name, op.From, op.To, err)
			return &Error{Reason: BuildFailed, Path: []any{"spec", "artifacts", b.artifact.Index, "copy", i}, Message: message}
		}
	}
	return nil
}

func (b *build) doubt(text string, path ...any) {
	b.doubts = append(b.doubts, Doubt{append([]any{"spec", "artifacts", b.artifact.Index}, path...), text})
}

// step counts a step, and returns an error beyond maxSteps, or if the context has ended.
func (b *build) step() error {
	if b.steps++; b.steps > maxSteps {
		return fmt.Errorf("more than %d comparisons of files and patterns", maxSteps)
	}
	if b.steps%1000 == 0 && b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return nil
}

// splitFrom splits @alias/pattern.
func splitFrom(from string) (alias, pattern string, ok bool) {
	alias, pattern, ok = strings.Cut(strings.TrimPrefix(from, "@"), "/")
	return alias, pattern, ok && strings.HasPrefix(from, "@")
}

func hasGlob(pattern string) bool { return strings.ContainsAny(pattern, "*?[]") }

type operation struct {
	swv1.CopyOperation
	alias, pattern string
	source         *Tree
	to             string // cleaned
	into           bool   // to ends with a slash
	fixed          string // the directories of the pattern before its first glob
	excluded       map[string]bool
	hits           int // number of matches of exclude
}

func (b *build) copy(op swv1.CopyOperation) error {
	alias, pattern, ok := splitFrom(op.From)
	if !ok {
		return fmt.Errorf("invalid from '%s'", op.From)
	}
	o := &operation{CopyOperation: op, alias: alias, pattern: pattern, source: b.sources[alias], excluded: map[string]bool{}}
	if o.source == nil {
		return fmt.Errorf("source alias '%s' not found", alias)
	}
	to := strings.TrimPrefix(strings.TrimPrefix(op.To, "@artifact"), "/")
	if o.to, o.into = path.Clean(to), to == "" || strings.HasSuffix(to, "/"); climbs(o.to) {
		return fmt.Errorf("failed to create '%s': path escapes from parent", to)
	}
	if err := checkExcludes(op.Exclude); err != nil {
		return err
	}
	var err error
	if hasGlob(pattern) {
		o.fixed = fixedPrefix(pattern)
		err = b.copyGlob(o)
	} else {
		o.fixed = path.Clean(pattern)
		err = b.copyPath(o)
	}
	if err == nil && len(op.Exclude) > 0 && o.hits == 0 {
		b.doubt("no copied file matches exclude", "copy", b.op, "exclude")
	}
	return err
}

func checkExcludes(patterns []string) error {
	for _, p := range patterns {
		if !doublestar.ValidatePattern(p) {
			return fmt.Errorf("invalid exclude pattern '%s'", p)
		}
		if strings.Count(p, "**") > maxDoublestars {
			return fmt.Errorf("exclude pattern with more than %d times '**'", maxDoublestars)
		}
	}
	return nil
}

func climbs(name string) bool {
	return name == ".." || strings.HasPrefix(name, "../") || path.IsAbs(name)
}

func fixedPrefix(pattern string) string {
	at := strings.IndexAny(pattern, "*?[]")
	dir, _ := path.Split(pattern[:at])
	return path.Clean(dir)
}

func (b *build) copyPath(o *operation) error {
	name := path.Clean(o.pattern)
	if climbs(name) || path.IsAbs(o.pattern) {
		return fmt.Errorf("failed to stat source '%s': path escapes from parent", o.pattern)
	}
	file, isFile := o.source.File(name)
	switch {
	case isFile:
		o.fixed = "."
		return b.copyFile(o, name, file)
	case !o.source.IsDir(name):
		return fmt.Errorf("source '%s' does not exist", o.pattern)
	case o.Strategy == swv1.ExtractStrategy:
		return fmt.Errorf("extract strategy is not supported for directories, got '%s'", strings.TrimSuffix(o.pattern, "/"))
	case name == ".":
		return b.copyDir(o, name, o.to)
	}
	return b.copyDir(o, name, path.Join(o.to, path.Base(name)))
}

func (b *build) copyFile(o *operation, name string, f File) error {
	if out, err := b.excludes(o, name); err != nil || out {
		return err
	}
	if o.Strategy == swv1.ExtractStrategy {
		if !isTarball(name) {
			return fmt.Errorf("extract strategy requires tarball file (.tar.gz or .tgz), got '%s'", o.pattern)
		}
		return b.extract(o, name, f)
	}
	to := o.to
	if o.into || b.out.IsDir(to) {
		to = path.Join(to, path.Base(name))
	}
	return b.put(o, name, to, f)
}

func (b *build) copyGlob(o *operation) error {
	matches, err := b.matches(o)
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return fmt.Errorf("no files match pattern '%s' in source '%s'", o.pattern, o.alias)
	}
	prefix, cut := strings.CutSuffix(o.pattern, "/**")
	cut = cut && !hasGlob(prefix)
	some := false
	for _, name := range matches {
		out, err := b.excludes(o, name)
		if err != nil {
			return err
		}
		if out {
			continue
		}
		some = true
		rel := name
		if cut {
			rel = strings.TrimPrefix(name, prefix+"/")
		}
		if err := b.copyMatch(o, name, path.Join(o.to, rel)); err != nil {
			return err
		}
	}
	if !some {
		return fmt.Errorf("all files matching pattern '%s' in source '%s' were excluded", o.pattern, o.alias)
	}
	return nil
}

func (b *build) copyMatch(o *operation, name, to string) error {
	f, isFile := o.source.File(name)
	switch {
	case o.Strategy == swv1.ExtractStrategy && !isTarball(name):
		return nil
	case o.Strategy == swv1.ExtractStrategy && !isFile:
		return fmt.Errorf("failed to extract tarball '%s': is a directory", name)
	case o.Strategy == swv1.ExtractStrategy:
		return b.extract(o, name, f)
	case isFile:
		return b.put(o, name, to, f)
	}
	return b.copyDir(o, name, to)
}

// matches returns the files and directories that match a pattern, sorted: with the globs of package path, in which ** is
// the same as *, or for archives those of doublestar.
func (b *build) matches(o *operation) ([]string, error) {
	match := path.Match
	if o.Strategy == swv1.ExtractStrategy {
		match = doublestar.Match
		if strings.Count(o.pattern, "**") > maxDoublestars {
			return nil, fmt.Errorf("pattern with more than %d times '**'", maxDoublestars)
		}
	}
	if _, err := match(o.pattern, ""); err != nil {
		return nil, fmt.Errorf("invalid pattern '%s'", o.pattern)
	}
	var found []string
	look := func(names []string) error {
		for _, name := range names {
			if err := b.step(); err != nil {
				return err
			}
			ok, err := match(o.pattern, name)
			if err != nil {
				return fmt.Errorf("invalid pattern '%s'", o.pattern)
			}
			if ok {
				found = append(found, name)
			}
		}
		return nil
	}
	return found, cmp.Or(look(o.source.Dirs()), look(o.source.Names()))
}

func (b *build) copyDir(o *operation, dir, to string) error {
	if o.Strategy == swv1.MergeStrategy {
		b.doubt("Merge is for files that from names or matches: the files of a directory overwrite", "copy", b.op, "strategy")
	}
	below := func(name string) string {
		if dir == "." {
			return path.Join(to, name)
		}
		return path.Join(to, strings.TrimPrefix(name, dir+"/"))
	}
	if err := cmp.Or(b.itself(o, dir, to), b.out.AddDir(to)); err != nil {
		return err
	}
	for _, name := range within(o.source.Dirs(), dir) {
		if out, err := b.excludesBelow(o, name, dir); err != nil {
			return err
		} else if out {
			continue
		}
		if err := b.out.AddDir(below(name)); err != nil {
			return err
		}
	}
	for _, name := range o.source.below(dir) {
		if out, err := b.excludesBelow(o, name, dir); err != nil {
			return err
		} else if out {
			continue
		}
		f, _ := o.source.File(name)
		f.Copied = b.op
		if err := b.out.Add(below(name), f); err != nil {
			return err
		}
	}
	return nil
}

// itself refuses to copy a file of the source in which the artifact is staged onto itself: source-watcher empties the file.
func (b *build) itself(o *operation, name, to string) error {
	if o.alias != b.artifact.Spec.Name || name != to {
		return nil
	}
	return fmt.Errorf("'%s' is copied onto itself and emptied: the artifact has the name of the alias", name)
}

func (b *build) put(o *operation, name, to string, f File) error {
	f.Copied = b.op
	if old, there := b.out.File(to); there && o.Strategy == swv1.MergeStrategy {
		merged, err := merge(old, f)
		if err != nil {
			return err
		}
		f.Content, f.Executable = merged, old.Executable
	} else if err := b.itself(o, name, to); err != nil {
		return err
	}
	return b.out.Add(to, f)
}

// excludesBelow reports whether exclude matches a file or directory below a copied directory, or a directory between the
// two. The copied directory itself was checked before, and its parents are never checked.
func (b *build) excludesBelow(o *operation, name, dir string) (bool, error) {
	for at := name; at != dir && at != "."; at = path.Dir(at) {
		if out, err := b.excludes(o, at); out || err != nil {
			return out, err
		}
	}
	return false, nil
}

// excludes reports whether exclude matches a path, and counts the match.
func (b *build) excludes(o *operation, name string) (bool, error) {
	if len(o.Exclude) == 0 {
		return false, nil
	}
	out, known := o.excluded[name]
	if !known {
		var err error
		if out, err = b.matchesExclude(o, name); err != nil {
			return false, err
		}
		o.excluded[name] = out
	}
	if out {
		o.hits++
	}
	return out, nil
}

func (b *build) matchesExclude(o *operation, name string) (bool, error) {
	ways := []string{name}
	if o.fixed != "." {
		if rel, ok := strings.CutPrefix(name, o.fixed+"/"); ok {
			ways = append(ways, rel)
		}
	}
	for _, pattern := range o.Exclude {
		if err := b.step(); err != nil {
			return false, err
		}
		for _, way := range ways {
			if ok, err := doublestar.Match(pattern, way); err == nil && ok {
				return true, nil
			}
		}
		if ok, err := doublestar.Match(pattern, path.Base(name)); err == nil && ok && !strings.Contains(pattern, "/") {
			return true, nil
		}
	}
	return false, nil
}

func under(dirs map[string]bool, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
	}
	return false
}

func doubtsOf(op swv1.CopyOperation, rendered bool) []string {
	_, pattern, _ := splitFrom(op.From)
	var list []string
	if strings.ContainsAny(pattern, "{}") && !rendered {
		list = append(list, fmt.Sprintf("'%s': braces are not a pattern: they have no special meaning", pattern))
	}
	if op.Strategy == swv1.ExtractStrategy || !hasGlob(pattern) {
		return list
	}
	prefix, all := strings.CutSuffix(pattern, "/**")
	inner := pattern
	if all && !hasGlob(prefix) {
		inner = prefix
	} else if to := strings.Trim(strings.TrimPrefix(op.To, "@artifact"), "/"); strings.Contains(pattern, "/") && to != "" {
		list = append(list, fmt.Sprintf("'%s' keeps the whole path: a file is copied to %s/%s", pattern, to, path.Dir(pattern)))
	}
	if pattern != "**" && strings.Contains(inner, "**") {
		list = append(list, fmt.Sprintf("'%s': ** matches one directory here, like *", pattern))
	}
	return list
}
