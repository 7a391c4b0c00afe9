package git

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The kinds of answers that outlive a run.
const (
	keptTarget = "git reference"
	keptPacks  = "git objects"
)

// aTarget is a gitTarget that is kept.
type aTarget struct {
	Name           string
	Full           bool
	Object, Commit plumbing.Hash
}

// aPack is a pack that is kept.
type aPack struct {
	Digest digest.Digest
	Size   int64
}

// packList are the packs that have all that is needed of a commit.
type packList struct {
	Packs []aPack
}

// location names the repository, and whether it is shown a login.
func (c *clone) location(u *url.URL) string {
	bare := *u
	bare.User = nil
	return fmt.Sprint(bare.String(), " ", c.options.Login != nil)
}

func (c *clone) targetName(u *url.URL) string { return c.refName(u, c.options.Ref) }

func (c *clone) refName(u *url.URL, ref Ref) string {
	text, _ := json.Marshal(ref) // texts alone
	return c.location(u) + string(text)
}

// packsName names the objects of a commit. What is selected counts: the others may not be there.
func (c *clone) packsName(u *url.URL, target *gitTarget, s selection) string {
	part, _ := json.Marshal(s)
	return fmt.Sprintf("%s %s %t %s", c.location(u), target.object, s.partial(), part)
}

// knownTarget is what spec.ref comes to without asking the server: what an earlier run was answered, where no connection is
// opened, or for a commit whose objects are kept. It is nil if the server is to be asked.
func (c *clone) knownTarget(u *url.URL) (*gitTarget, error) {
	m := &c.options.Memory
	var kept aTarget
	found := m.Recall(keptTarget, c.targetName(u), &kept)
	t := &gitTarget{name: kept.Name, full: kept.Full, object: kept.Object, commit: kept.Commit}
	switch {
	case !m.Offline() && (!found || c.options.Ref.Commit == "" || !c.hasPacks(u, t)):
		return nil, nil
	case !found:
		return nil, m.Missing(finding.RefIn + auth.RedactURL(u.String()))
	}
	return t, nil
}

// rememberTarget keeps what spec.ref has come to, and the commit itself, which a lock requests from then on.
func (c *clone) rememberTarget(u *url.URL, t *gitTarget) {
	c.options.Memory.Remember(keptTarget, c.targetName(u), aTarget{t.name, t.full, t.object, t.commit})
	ref := c.options.Ref
	if ref.Commit != "" || t.object != t.commit {
		return
	}
	byCommit, name := Ref{Commit: t.commit.String()}, ""
	if ref.Name == "" && ref.Tag == "" && ref.SemVer == "" && ref.Any == "" {
		byCommit.Branch, name = ref.Branch, t.name
	}
	c.options.Memory.Remember(keptTarget, c.refName(u, byCommit), aTarget{name, false, t.commit, t.commit})
}

// keptPacks are those that have what is needed of a target.
func (c *clone) keptPacks(u *url.URL, t *gitTarget, s selection) (list packList, ok bool) {
	m := &c.options.Memory
	if m.Recall(keptPacks, c.packsName(u, t, s), &list) {
		return list, true
	}
	return list, s.partial() && m.Recall(keptPacks, c.packsName(u, t, nil), &list)
}

func (c *clone) hasPacks(u *url.URL, t *gitTarget) bool {
	list, ok := c.keptPacks(u, t, newSelection(c.options))
	m := &c.options.Memory
	return ok && !slices.ContainsFunc(list.Packs, func(p aPack) bool { return !m.Cache.Holds(m.Scope, p.Digest) })
}

// recall puts the objects of a target into a store, if all of them are kept.
func (c *clone) recall(ctx context.Context, u *url.URL, store *gitStore, t *gitTarget, s selection) bool {
	list, ok := c.keptPacks(u, t, s)
	if !ok || !c.load(ctx, store, list) {
		return false
	}
	_, err := store.commit(t.commit)
	return err == nil
}

// load reads packs from the cache. A pack that is only half a repository does no harm: it is looked into by hash.
func (c *clone) load(ctx context.Context, store *gitStore, list packList) bool {
	for _, p := range list.Packs {
		if err := c.loadPack(ctx, store, p); err != nil {
			return false
		}
	}
	return len(list.Packs) > 0
}

var errNotKept = errors.New("the pack is not in the cache")

func (c *clone) loadPack(ctx context.Context, store *gitStore, p aPack) error {
	m := &c.options.Memory
	f, err := os.CreateTemp(store.dir, "pack-*")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if !m.Cache.Load(m.Scope, p.Digest, c.options.Limits.Pack, f) {
		return errNotKept
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := store.inspect(packfile.NewScanner(f)); err != nil {
		return err
	}
	return store.index(ctx, f)
}

// remember keeps the packs of a store for later runs. What cannot be read is not kept.
func (c *clone) remember(u *url.URL, store *gitStore, t *gitTarget, s selection) {
	m := &c.options.Memory
	if m.Cache == nil {
		return
	}
	names, _ := filepath.Glob(filepath.Join(store.dir, "objects", "pack", "*.pack"))
	var list packList
	for _, name := range names {
		p, err := c.rememberPack(name)
		if err != nil {
			return
		}
		list.Packs = append(list.Packs, p)
	}
	m.Remember(keptPacks, c.packsName(u, t, s), list)
}

func (c *clone) rememberPack(name string) (aPack, error) {
	f, err := file.Open(name)
	if err != nil {
		return aPack{}, err
	}
	defer func() { _ = f.Close() }()
	w := digest.NewWriter(godigest.Canonical)
	if _, err := io.Copy(w, f); err != nil {
		return aPack{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return aPack{}, err
	}
	m := &c.options.Memory
	scope := m.Scope
	scope.Item = "pack"
	m.Cache.Keep(scope, w.Digest(), w.Size(), f)
	return aPack{w.Digest(), w.Size()}, nil
}
