package git

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
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
func (c *clone) submodules(ctx context.Context, parent *url.URL, store *gitStore, commit *object.Commit, modules []gitModule, into *fetch.Tree) error {
	urls, err := store.moduleURLs(commit)
	if err != nil {
		return err
	}
	for _, m := range modules {
		raw, found := urls[m.path]
		if !found {
			return fmt.Errorf("submodule %s: not in .gitmodules", m.path)
		}
		if c.modules++; c.modules > maxSubmodules {
			return tooLarge("number of submodules", maxSubmodules)
		}
		u, err := moduleURL(parent, raw)
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
	home, err := auth.ParseURL(c.options.URL)
	if err != nil {
		return err
	}
	sub := &clone{client: c.client, options: c.options, slot: c.slot, modules: c.modules}
	sub.options.SparseCheckout, sub.options.Only, sub.options.Verify = nil, nil, nil
	sub.depth = c.depth + 1
	if sub.depth > maxSubmoduleDepth {
		return tooLarge("depth of submodules", maxSubmoduleDepth)
	}
	if !auth.SameOrigin(home, u) {
		sub.options.Login = nil
	}
	if err := c.slot.Move(ctx, u); err != nil {
		return err
	}
	defer func() { c.modules = sub.modules }()
	return sub.module(ctx, u, m, into)
}

// module writes a submodule into its place in the parent's tree.
func (c *clone) module(ctx context.Context, u *url.URL, m gitModule, into *fetch.Tree) error {
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return err
	}
	defer store.Close()
	all := selection(nil)
	if err := c.moduleObjects(ctx, u, store, m, all); err != nil {
		return err
	}
	commit, err := store.commit(plumbing.NewHash(m.hash.String()))
	if err != nil {
		return fmt.Errorf("commit %s: %w", m.hash, err)
	}
	root, err := into.Root.OpenRoot(m.path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	part := &fetch.Tree{Root: root}
	err = c.checkout(ctx, u, store, commit, all, part)
	into.Files += part.Files
	return err
}

// moduleObjects gets the objects of a submodule from the cache, or else from its server.
func (c *clone) moduleObjects(ctx context.Context, u *url.URL, store *gitStore, m gitModule, all selection) error {
	kept := &gitTarget{object: m.hash, commit: m.hash}
	switch {
	case c.recall(ctx, u, store, kept, all):
		return nil
	case c.options.Memory.Offline():
		return c.options.Memory.Missing("commit " + m.hash.String() + " of " + auth.RedactURL(u.String()))
	}
	conn, err := c.open(ctx, u, c.options.Login)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	remote, err := openGitRemote(ctx, conn, c.options.Login.scrub)
	if err != nil {
		return err
	}
	target, err := c.resolveCommit(ctx, remote, Ref{Commit: m.hash.String()})
	if err != nil {
		return err
	}
	return c.objects(ctx, u, remote, store, target, all)
}
