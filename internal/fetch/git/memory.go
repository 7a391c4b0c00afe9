package git

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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

// packList holds the packs with all objects that are needed of a commit. Caches and bundles contain it.
type packList struct{ Packs []keptPack }

type keptPack struct{ Digest digest.Digest }

// location names the repository, and whether it is shown a login.
func (c *clone) location() string {
	bare := *c.url
	bare.User = nil
	return fmt.Sprint(bare.String(), " ", c.options.Login != nil)
}

func (c *clone) refName(ref Ref) string {
	text, _ := json.Marshal(ref) // texts alone
	return c.location() + string(text)
}

// packsName names the objects of a commit. The selection is part of the name: objects outside it may be missing.
func (c *clone) packsName(target *gitTarget, s selection) string {
	part, _ := json.Marshal(s)
	return fmt.Sprintf("%s %s %t %s", c.location(), target.Object, s.partial(), part)
}

// knownTarget returns the target of spec.ref without a request: the target of an earlier run, if no connection may be
// opened, or if it is a commit whose objects are kept. It is nil if the server has to resolve spec.ref.
func (c *clone) knownTarget() (*gitTarget, error) {
	if c.pinned != nil {
		return c.pinned, nil
	}
	m, t := &c.options.Memory, &gitTarget{}
	found := m.Recall(keptTarget, c.refName(c.options.Ref), t)
	switch {
	case !m.Offline() && (!found || c.options.Ref.Commit == "" || !c.hasPacks(t)):
		return nil, nil
	case !found:
		return nil, m.Missing(finding.RefIn + auth.RedactURL(c.url.String()))
	}
	return t, nil
}

// rememberTarget records the target of spec.ref, also under the commit itself, which a lock requests from then on.
func (c *clone) rememberTarget(t *gitTarget) {
	if c.pinned != nil {
		return
	}
	ref := c.options.Ref
	c.options.Memory.Remember(keptTarget, c.refName(ref), t)
	if ref.Commit != "" || t.Object != t.Commit {
		return
	}
	byCommit, kept := Ref{Commit: t.Commit.String()}, &gitTarget{Object: t.Commit, Commit: t.Commit}
	if ref.Name == "" && ref.Tag == "" && ref.SemVer == "" && ref.Any == "" {
		byCommit.Branch, kept.Name = ref.Branch, t.Name
	}
	c.options.Memory.Remember(keptTarget, c.refName(byCommit), kept)
}

// keptPacks returns the kept packs with the needed objects of a target.
func (c *clone) keptPacks(t *gitTarget) (list packList, ok bool) {
	m, s := &c.options.Memory, newSelection(c.options)
	if m.Recall(keptPacks, c.packsName(t, s), &list) {
		return list, true
	}
	return list, s.partial() && m.Recall(keptPacks, c.packsName(t, nil), &list)
}

func (c *clone) hasPacks(t *gitTarget) bool {
	list, ok := c.keptPacks(t)
	m := &c.options.Memory
	return ok && !slices.ContainsFunc(list.Packs, func(p keptPack) bool { return !m.Cache.Holds(m.Scope, p.Digest) })
}

// recall puts the objects of a target into a store, if all of them are kept. A pack of a part of the repository does no
// harm: objects are looked up by hash.
func (c *clone) recall(ctx context.Context, store *gitStore, t *gitTarget) bool {
	list, ok := c.keptPacks(t)
	if !ok {
		return false
	}
	for _, p := range list.Packs {
		if err := c.loadPack(ctx, store, p.Digest); err != nil {
			return false
		}
	}
	_, err := store.commit(t.Commit)
	return err == nil
}

var errNotKept = errors.New("the pack is not in the cache")

func (c *clone) loadPack(ctx context.Context, store *gitStore, d digest.Digest) error {
	m := &c.options.Memory
	f, err := os.CreateTemp(store.dir, "pack-*")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if !m.Cache.Load(m.Scope, d, c.options.Limits.Pack, f) {
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

// remember keeps the packs of a store for later runs. A pack that cannot be read is not kept.
func (c *clone) remember(store *gitStore, t *gitTarget) {
	m := &c.options.Memory
	if m.Cache == nil {
		return
	}
	names, _ := filepath.Glob(filepath.Join(store.dir, "objects", "pack", "*.pack"))
	var list packList
	for _, name := range names {
		d, err := c.rememberPack(name)
		if err != nil {
			return
		}
		list.Packs = append(list.Packs, keptPack{d})
	}
	m.Remember(keptPacks, c.packsName(t, newSelection(c.options)), list)
}

func (c *clone) rememberPack(name string) (digest.Digest, error) {
	f, err := file.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	w := digest.NewWriter(godigest.Canonical)
	if _, err := io.Copy(w, f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	m := &c.options.Memory
	scope := m.Scope
	scope.Item = "pack"
	m.Cache.Keep(scope, w.Digest(), w.Size(), f)
	return w.Digest(), nil
}
