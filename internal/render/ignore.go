package render

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// rootRules returns the rules for files that are ignored in a repository: from the file at its root, and Flux's defaults.
func (r *repository) rootRules() *tree.Rules {
	var text []byte
	path, err := r.disk.within(r.root, filepath.Join(r.root, tree.IgnoreFile))
	if err == nil {
		text, err = readFile(path)
	}
	if file.Missing(err) || errors.Is(err, file.ErrDirectory) {
		text, err = nil, nil
	}
	rules := new(tree.Rules)
	if err == nil {
		rules, err = tree.NewRules(string(text))
	}
	if err != nil {
		r.unruled(fmt.Errorf("%s: %w", tree.IgnoreFile, err))
		return new(tree.Rules).WithDefaults()
	}
	return rules.WithDefaults()
}

// unruled records the first error of an ignore file.
func (r *repository) unruled(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rulesErr = cmp.Or(r.rulesErr, err)
}

// artifact identifies the artifact that the source of a Kustomization makes of the repository.
type artifact struct {
	git    bool
	source *manifest.Object // nil if it is not known
	ignore string           // spec.ignore
}

// choice returns the rule for a path in an artifact. It reads the ignore files only if they can matter: most repositories have no
// such file, and ignore no other file.
func (r *repository) choice(path string, dir bool, a artifact) tree.Choice {
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return tree.Keep
	}
	rel = filepath.ToSlash(rel)
	first := r.rules().Choose(rel, dir)
	if !a.git || a.ignore == "" && first == tree.Keep && !r.saysIgnored(filepath.Dir(path)) {
		return first
	}
	rules, ok := known(&r.mu, r.ignored, a.ignore)
	if !ok {
		rules = r.allRules(a.ignore)
		learn(&r.mu, r.ignored, a.ignore, rules)
	}
	return rules.Choose(rel, dir)
}

// allRules returns the rules of all ignore files and of the source. If it cannot read one, no build is complete.
func (r *repository) allRules(spec string) *tree.Rules {
	root, err := file.OpenRoot(r.root)
	if err == nil {
		defer root.Close()
		var rules *tree.Rules
		if rules, err = tree.SourceRules(r.ctx, root, spec, tree.Options{}); err == nil {
			return rules
		}
	}
	r.unruled(err)
	return new(tree.Rules)
}

// saysIgnored reports whether a directory, or one of its parents in the repository, has an ignore file.
func (r *repository) saysIgnored(dir string) bool {
	says, ok := known(&r.mu, r.ignores, dir)
	if !ok {
		_, err := os.Stat(filepath.Join(dir, tree.IgnoreFile))
		says = !file.Missing(err) || dir != r.root && inside(r.root, dir) && r.saysIgnored(filepath.Dir(dir))
		learn(&r.mu, r.ignores, dir, says)
	}
	return says
}
