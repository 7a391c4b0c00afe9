package render

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

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

func (r *Renderer) artifactOf(f *flux, built sources) artifact {
	ref := sourceRef(f.object)
	a := artifact{git: ref.Kind == sourcev1.GitRepositoryKind, source: r.sourceFor(f.object, built, ref)}
	if a.source != nil && a.git {
		a.ignore = manifest.At[string](a.source.Content, "spec", "ignore")
	}
	return a
}

// ignores reports whether a path is missing from the artifact that the controller sees.
func (f *flux) ignores(path string, dir bool) bool {
	choice := f.repo.choice(path, dir, f.artifact)
	return choice == tree.DropAll || choice == tree.Drop && !dir
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

// complete returns an error if a file of a build is missing from the artifact, or if that is not known.
func (f *flux) complete(c *closure) error {
	err := f.absent(c)
	f.repo.mu.Lock()
	defer f.repo.mu.Unlock()
	if f.repo.rulesErr != nil {
		return manifest.Fault(f.object, fmt.Errorf("what the source leaves out is not known: %w", f.repo.rulesErr), "spec", "sourceRef")
	}
	return err
}

func (f *flux) absent(c *closure) error {
	if !f.artifact.git {
		return nil
	}
	if why := f.left(f.path, true); why != "" {
		return manifest.Fault(f.object, fmt.Errorf("%w: %s", f.pathError(os.ErrNotExist), why), "spec", "path")
	}
	for _, d := range c.dirs {
		for _, e := range d.entries {
			path := e.path
			if f.repo.isDirectory(path) {
				path = f.repo.kustomizationFile(path)
			}
			if why := f.left(path, false); path != "" && why != "" {
				return &placedError{d.object.Excerpt(e.at...), fmt.Errorf("%s: %s: %s", e.field, e.text, why)}
			}
		}
	}
	return nil
}

// left explains why a path is missing from the artifact of the source. It returns "" if it is there or if that is not known.
func (f *flux) left(path string, dir bool) string {
	if path == f.repo.root || !f.ignores(path, dir) || dir && f.repo.choice(path, dir, f.artifact) != tree.DropAll {
		return ""
	}
	rel, err := filepath.Rel(f.repo.root, path)
	if err != nil {
		return ""
	}
	rel = filepath.ToSlash(rel)
	source := "the source"
	if o := f.artifact.source; o != nil {
		source = fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
	}
	by := "a " + tree.IgnoreFile
	switch own, err := tree.NewRules(f.artifact.ignore); {
	case err == nil && own.Ignored(rel, dir):
		by = "spec.ignore"
	case new(tree.Rules).WithDefaults().Ignored(rel, dir) && !f.repo.saysIgnored(filepath.Dir(path)):
		if f.artifact.source == nil {
			return "" // its spec.ignore may include it again
		}
		by = "Flux's own list of what is ignored"
	}
	return fmt.Sprintf("it is not in the artifact of %s, because of %s", source, by)
}
