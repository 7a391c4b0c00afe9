package render

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/helmsrc/helmsrc/internal/tree"
)

// maxIgnoreFile bounds a .sourceignore file.
const maxIgnoreFile = 1 << 20

// rulesOf reads what the file at the root of a repository keeps out of its artifact; nil if there is none.
func rulesOf(root string) func() *tree.Rules {
	return sync.OnceValue(func() *tree.Rules {
		file := filepath.Join(root, tree.IgnoreFile)
		info, err := os.Stat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil
		}
		rules, err := tree.NewRules(string(text))
		if err != nil {
			return nil
		}
		return rules
	})
}

// ignores tells whether a path is no part of the artifact that the controller would see.
func (r *repository) ignores(path string, dir bool) bool {
	rules := r.rules()
	if rules == nil {
		return ignored(filepath.Base(path), dir)
	}
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return false
	}
	choice := rules.Choose(filepath.ToSlash(rel), dir)
	return choice == tree.DropAll || choice == tree.Drop && !dir
}

// ignored tells what is no part of a source's artifact by default.
func ignored(name string, dir bool) bool {
	if dir {
		return name == ".git" || name == ".github" || name == ".circleci"
	}
	switch name {
	case ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml", "cloudbuild.yaml", "codeship-services.yml",
		"codeship-steps.yml", ".goreleaser.yml", ".sops.yaml", ".flux.yaml":
		return true
	}
	return false
}
