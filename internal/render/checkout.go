package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxGitFile is the limit, in bytes, of a file in a Git directory.
const maxGitFile = 8 << 20

// checkout holds the state of a working tree, as its Git directory records it.
type checkout struct {
	remotes []string          // the repository names of its remotes
	owners  []string          // the owners of these repositories
	branch  string            // that is checked out, "" for a detached HEAD
	commit  string            // that is checked out, "" if it is not known
	main    []string          // the default branches of the remotes
	tags    map[string]string // commits; those of annotated tags are known from packed-refs alone
	unread  map[string]error  // errors of existing files that cannot be read, by path
}

func readCheckout(root string) *checkout {
	c := &checkout{tags: map[string]string{}, unread: map[string]error{}}
	dir := filepath.Join(root, ".git")
	if text := c.file(dir); strings.HasPrefix(text, "gitdir:") { // of a worktree, or a submodule
		if dir = strings.TrimSpace(strings.TrimPrefix(text, "gitdir:")); !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
	}
	common := dir
	if text := strings.TrimSpace(c.file(filepath.Join(dir, "commondir"))); text != "" {
		if common = text; !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
	}
	for _, url := range remotesIn(c.file(filepath.Join(common, "config"))) {
		c.remotes = append(c.remotes, lastSegment(url))
		if owner := ownerOf(url); owner != "" {
			c.owners = append(c.owners, owner)
		}
	}
	refs := packedRefs(c.file(filepath.Join(common, "packed-refs")), c.tags)
	lookup := func(ref string) string {
		if !filepath.IsLocal(filepath.FromSlash(ref)) {
			return "" // Git refuses it
		}
		if text := strings.TrimSpace(c.file(filepath.Join(common, filepath.FromSlash(ref)))); text != "" {
			return text
		}
		return refs[ref]
	}
	head := strings.TrimSpace(c.file(filepath.Join(dir, "HEAD")))
	if ref, ok := strings.CutPrefix(head, "ref: "); ok {
		c.branch, _ = strings.CutPrefix(ref, "refs/heads/")
		c.commit = lookup(ref)
	} else {
		c.commit = head
	}
	for _, remote := range c.list(filepath.Join(common, "refs", "remotes")) {
		prefix := "refs/remotes/" + remote.Name() + "/"
		text := strings.TrimSpace(c.file(filepath.Join(common, filepath.FromSlash(prefix), "HEAD")))
		if branch, ok := strings.CutPrefix(text, "ref: "+prefix); ok {
			c.main = append(c.main, branch)
		}
	}
	for _, tag := range c.list(filepath.Join(common, "refs", "tags")) {
		if tag.IsDir() {
			continue
		}
		if commit := lookup("refs/tags/" + tag.Name()); commit != "" && c.tags[tag.Name()] == "" {
			c.tags[tag.Name()] = commit
		}
	}
	return c
}

// file reads a small file. It returns "" if the file is missing or cannot be read.
func (c *checkout) file(name string) string {
	text, err := file.ReadInside(name, maxGitFile)
	if c.fails(name, err) {
		return ""
	}
	return string(text)
}

// list lists a directory, which may be missing.
func (c *checkout) list(name string) []fs.DirEntry {
	entries, err := file.ReadDirInside(name)
	c.fails(name, err)
	return entries
}

func (c *checkout) fails(name string, err error) bool {
	if err != nil && !file.Missing(err) && !errors.Is(err, file.ErrDirectory) {
		c.unread[name] = plainPathError(err)
	}
	return err != nil
}

// packedRefs parses a packed-refs file. The line after an annotated tag contains its commit.
func packedRefs(text string, tags map[string]string) map[string]string {
	refs := map[string]string{}
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if commit, ok := strings.CutPrefix(line, "^"); ok {
			tags[strings.TrimPrefix(last, "refs/tags/")] = commit
			continue
		}
		commit, ref, _ := strings.Cut(line, " ")
		refs[ref], last = commit, ref
		if tag, ok := strings.CutPrefix(ref, "refs/tags/"); ok {
			tags[tag] = commit
		}
	}
	return refs
}

// remotesIn returns the addresses of the remotes in a Git configuration.
func remotesIn(text string) []string {
	var urls []string
	remote := false
	for line := range bytes.Lines([]byte(text)) {
		line := strings.TrimSpace(string(line))
		if strings.HasPrefix(line, "[") {
			remote = strings.HasPrefix(line, "[remote ")
		}
		key, value, found := strings.Cut(line, "=")
		if remote && found && strings.TrimSpace(key) == "url" {
			urls = append(urls, value)
		}
	}
	return urls
}

// lastSegment returns the name of a repository from its URL: forks and mirrors share it.
func lastSegment(url string) string {
	url, _, _ = strings.Cut(strings.TrimSpace(url), "?")
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	return strings.ToLower(url[strings.LastIndexAny(url, "/:")+1:])
}

// ownerOf returns the URL of a repository without scheme, user and name, in lower case: host and owner. It is "" without an owner.
func ownerOf(url string) string {
	url, _, _ = strings.Cut(strings.TrimSpace(url), "?")
	url = strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = strings.Replace(url, ":", "/", 1) // git@host:owner/name
	}
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		rest = rest[at+1:]
	}
	owner := rest[:max(0, strings.LastIndexByte(rest, '/'))]
	if !strings.Contains(owner, "/") {
		return "" // a host alone does not identify an owner
	}
	return strings.ToLower(owner)
}

type gitRef struct{ branch, tag, semver, name, commit string }

func refOf(source *manifest.Object) gitRef {
	field := func(name string) string { return manifest.At[string](source.Content, "spec", "ref", name) }
	g := gitRef{field("branch"), field("tag"), field("semver"), field("name"), field("commit")}
	if branch, ok := strings.CutPrefix(g.name, "refs/heads/"); ok {
		g.branch, g.name = branch, ""
	}
	if tag, ok := strings.CutPrefix(g.name, "refs/tags/"); ok {
		g.tag, g.name = tag, ""
	}
	return g
}

func (g gitRef) String() string {
	for _, part := range []struct{ what, value string }{
		{"commit", g.commit}, {"ref", g.name}, {"a version that matches", g.semver}, {"tag", g.tag}, {"branch", g.branch},
	} {
		if part.value != "" {
			return fmt.Sprintf("%s %s", part.what, part.value)
		}
	}
	return "its default branch"
}

// at reports whether a ref leads to the commit that is checked out. A branch does if it is checked out, or if the branch that is
// checked out will be merged into it: the branch of the repository's own source, or the remote's default branch.
func (c *checkout) at(g gitRef, own []string) bool {
	switch {
	case g.commit != "":
		return g.commit == c.commit
	case g.semver != "":
		return false
	case g.name != "":
		return false
	case g.tag != "":
		return c.commit != "" && c.tags[g.tag] == c.commit
	case g.branch == "", g.branch == c.branch, slices.Contains(own, g.branch), slices.Contains(c.main, g.branch):
		return true
	}
	// A clone without a default branch, as in pipelines, does not show it: assume the usual names.
	return len(c.main) == 0 && len(own) == 0 && (g.branch == "main" || g.branch == "master")
}

// urlOf returns the URL of a source, "" if it is missing or contains variables.
func urlOf(source *manifest.Object) string {
	if source == nil {
		return ""
	}
	text := manifest.At[string](source.Content, "spec", "url")
	if strings.Contains(text, "${") {
		return ""
	}
	return text
}
