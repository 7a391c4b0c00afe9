package render

import (
	"path/filepath"
	"sync"

	"github.com/helmsrc/helmsrc/internal/tree"
)

// rulesOf says what is kept out of the artifact of a repository: by the file at its root, or by Flux's own list.
func rulesOf(root string) func() *tree.Rules {
	return sync.OnceValue(func() *tree.Rules {
		text, _ := readFile(filepath.Join(root, tree.IgnoreFile)) // nothing if there is none
		rules, err := tree.NewRules(string(text))
		if err != nil {
			rules = new(tree.Rules)
		}
		return rules.WithDefaults()
	})
}

// ignores reports whether a path is no part of the artifact that the controller would see.
func (r *repository) ignores(path string, dir bool) bool {
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return false
	}
	choice := r.rules().Choose(filepath.ToSlash(rel), dir)
	return choice == tree.DropAll || choice == tree.Drop && !dir
}
