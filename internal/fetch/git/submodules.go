package git

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

const (
	maxSubmodules     = 200 // in all levels together
	maxSubmoduleDepth = 10
	maxModulesFile    = 1 << 20
)

// submodules gets the repositories that are part of another one. The login goes to the repository's own host only: a
// repository could otherwise send it anywhere.
func (c *clone) submodules(ctx context.Context, store *gitStore, commit *object.Commit, modules []gitModule, into *fetch.Tree) error {
	urls, err := store.moduleURLs(commit)
	if err != nil {
		return err
	}
	for _, m := range modules {
		raw, found := urls[m.path]
		if !found {
			return fmt.Errorf("submodule %s: not in .gitmodules", m.path)
		}
		if *c.modules++; *c.modules > maxSubmodules {
			return tooLarge("number of submodules", maxSubmodules)
		}
		u, err := moduleURL(c.url, raw)
		if err != nil {
			return fmt.Errorf("submodule %s: %w", m.path, err)
		}
		if err := c.submodule(ctx, u, m, into); err != nil {
			return fmt.Errorf("submodule %s: unable to clone '%s': %w", m.path, auth.RedactURL(u.String()), err)
		}
	}
	return nil
}

func (s *gitStore) moduleURLs(commit *object.Commit) (map[string]string, error) {
	t, err := object.GetTree(s.objects, commit.TreeHash)
	if err != nil {
		return nil, err
	}
	f, err := t.File(".gitmodules")
	if errors.Is(err, object.ErrFileNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.Size > maxModulesFile {
		return nil, tooLarge(".gitmodules", maxModulesFile)
	}
	text, err := f.Contents()
	if err != nil {
		return nil, err
	}
	list := config.NewModules()
	if err := list.Unmarshal([]byte(text)); err != nil {
		return nil, fmt.Errorf(".gitmodules: %w", err)
	}
	urls := map[string]string{}
	for _, m := range list.Submodules {
		urls[path.Clean(m.Path)] = m.URL
	}
	return urls, nil
}

// moduleURL reads a submodule's URL: relative to its parent's, in the short form for SSH, or in full.
func moduleURL(parent *url.URL, raw string) (*url.URL, error) {
	if strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../") {
		u := *parent
		u.Path, u.RawPath = path.Join("/", parent.Path, raw), ""
		return &u, nil
	}
	if host, rest, ok := strings.Cut(raw, ":"); ok && !strings.HasPrefix(rest, "//") && !strings.Contains(host, "/") {
		raw = "ssh://" + host + "/" + strings.TrimPrefix(rest, "/")
	}
	u, err := auth.ParseURL(raw)
	if err != nil {
		return nil, err
	}
	return u, checkURL(u)
}

func (c *clone) submodule(ctx context.Context, u *url.URL, m gitModule, into *fetch.Tree) error {
	sub := *c
	sub.url, sub.pinned = u, &gitTarget{Object: m.hash, Commit: m.hash}
	sub.options.SparseCheckout, sub.options.Only, sub.options.Verify, sub.options.Unless = nil, nil, nil, ""
	if sub.depth++; sub.depth > maxSubmoduleDepth {
		return tooLarge("depth of submodules", maxSubmoduleDepth)
	}
	if !auth.SameOrigin(c.home, u) {
		sub.options.Login = nil
	}
	if err := c.slot.Move(ctx, u); err != nil {
		return err
	}
	err := sub.module(ctx, m, into)
	if sub.options.Login != nil {
		c.options.Login = sub.options.Login // the token of a GitHub App is for all submodules
	}
	return err
}

// module writes a submodule into its place in the parent's tree.
func (c *clone) module(ctx context.Context, m gitModule, into *fetch.Tree) error {
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := c.objects(ctx, store); err != nil {
		return err
	}
	commit, err := store.commit(m.hash)
	if err != nil {
		return fmt.Errorf("commit %s: %w", m.hash, err)
	}
	root, err := into.Root.OpenRoot(m.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	part := &fetch.Tree{Root: root}
	err = c.checkout(ctx, store, commit, part)
	into.Files += part.Files
	return err
}
