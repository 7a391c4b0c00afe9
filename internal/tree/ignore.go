package tree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/helmsrc/helmsrc/internal/file"
)

// IgnoreFile lists the files that do not belong to a source. Every directory may have one.
const IgnoreFile = ".sourceignore"

const (
	gitDir = ".git"

	maxIgnoreFile = 1 << 20

	// Every pattern is matched with every file.
	maxPatterns = 10_000
)

// vcsPatterns always apply, unless a pattern of the source includes a file again.
func vcsPatterns() []string {
	return []string{".git/", ".gitignore", ".gitmodules", ".gitattributes"}
}

// defaultPatterns apply to a source without patterns. They are those of Flux.
func defaultPatterns() []string {
	return []string{
		"*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip",
		".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml", "cloudbuild.yaml",
		"codeship-services.yml", "codeship-steps.yml",
		"**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml",
	}
}

// Rules are ignore patterns in the syntax of .gitignore: the last matching pattern decides.
type Rules struct {
	patterns []gitignore.Pattern
	takeBack bool // some pattern begins with an exclamation mark
}

// NewRules parses the patterns of the texts, without defaults, as Flux does for buckets.
func NewRules(texts ...string) (*Rules, error) {
	r := new(Rules)
	for _, text := range texts {
		if err := r.read(strings.NewReader(text), nil); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// SourceRules reads the .sourceignore files below root, except in directories that the filter drops, and then the patterns of
// spec.ignore, as Flux does for Git and OCI sources: files of version control are always ignored, and without any pattern,
// files that rarely belong to a source are ignored, too.
func SourceRules(ctx context.Context, root *os.Root, spec string, o Options) (*Rules, error) {
	own := new(Rules)
	steps := &walk{ctx: ctx, root: root, filter: All(skipGit, o.Filter), entries: o.Limits.withDefaults().Entries}
	steps.visit = func(name string, dir bool) error {
		if !dir {
			return nil
		}
		return own.readFile(root, name)
	}
	if err := own.readFile(root, "."); err != nil {
		return nil, err
	}
	if err := steps.dir(".", 0); err != nil {
		return nil, err
	}
	if err := own.read(strings.NewReader(spec), nil); err != nil {
		return nil, err
	}
	return own.WithDefaults(), nil
}

func skipGit(name string, dir bool) Choice {
	if dir && path.Base(name) == gitDir {
		return DropAll
	}
	return Keep
}

// VCSRules returns rules that ignore only the files of version control.
func VCSRules() *Rules {
	all := new(Rules)
	for _, p := range vcsPatterns() {
		all.patterns = append(all.patterns, gitignore.ParsePattern(p, nil))
	}
	return all
}

// WithDefaults returns the rules with those that always apply, for files of version control, and, without any pattern, those
// for files that rarely belong to a source.
func (r *Rules) WithDefaults() *Rules {
	all := &Rules{takeBack: r.takeBack}
	first := vcsPatterns()
	if len(r.patterns) == 0 {
		first = append(first, defaultPatterns()...)
	}
	for _, p := range first {
		all.patterns = append(all.patterns, gitignore.ParsePattern(p, nil))
	}
	all.patterns = append(all.patterns, r.patterns...)
	return all
}

// readFile reads the patterns of a directory, which apply below it. The file may be a link that stays in the root.
func (r *Rules) readFile(root *os.Root, dir string) error {
	name := path.Join(dir, IgnoreFile)
	f, err := file.OpenIn(root, name)
	if file.Missing(err) || errors.Is(err, file.ErrDirectory) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.read(f, domain(dir)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func domain(dir string) []string {
	if dir == "." {
		return nil
	}
	return strings.Split(dir, "/")
}

func (r *Rules) read(from io.Reader, domain []string) error {
	text := &io.LimitedReader{R: from, N: maxIgnoreFile + 1}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxIgnoreFile+1)
	for lines.Scan() {
		r.add(lines.Text(), domain)
		if len(r.patterns) > maxPatterns {
			return limitError("there are more than %d ignore patterns", maxPatterns)
		}
	}
	if text.N == 0 {
		return limitError("ignore patterns have more than %d bytes", maxIgnoreFile)
	}
	return lines.Err()
}

func (r *Rules) add(line string, domain []string) {
	if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
		return
	}
	r.patterns = append(r.patterns, gitignore.ParsePattern(line, domain))
	r.takeBack = r.takeBack || strings.HasPrefix(line, "!")
}

// Ignored reports whether the patterns ignore a file or directory, given by its slash-separated path from the root.
func (r *Rules) Ignored(name string, dir bool) bool {
	return gitignore.NewMatcher(r.patterns).Match(strings.Split(name, "/"), dir)
}

// Choose is a [Filter]. As in source-controller, and unlike in Git, a pattern can include a file of an ignored directory
// again, except in .git: the repository's configuration may hold credentials.
func (r *Rules) Choose(name string, dir bool) Choice {
	if skipGit(name, dir) == DropAll {
		return DropAll
	}
	switch {
	case !r.Ignored(name, dir):
		return Keep
	case r.takeBack:
		return Drop
	}
	return DropAll
}
