package git

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
)

// TestGitCache has a repository fetched in run after run: a commit whose objects are kept is not downloaded again, and needs no
// connection if spec.ref names it.
func TestGitCache(t *testing.T) {
	w := newGitWorld(t, "")
	big := noise(1 << 20)
	first := commit(t, w.git, "first", map[string]string{"big": big, "chart/x": "x"})
	dir := t.TempDir()
	read := func(o Options) (*fetch.Tree, int64, error) {
		t.Helper()
		c, err := cache.Open(dir, cache.Options{Now: time.Now, Warn: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		var bytes, last int64
		ctx := fetch.With(t.Context(), func(p fetch.Progress) {
			if p.Read < last {
				bytes += last
			}
			last = p.Read
		})
		o.URL, o.TempDir, o.Memory.Cache = gitURL, t.TempDir(), c
		o.Memory.Scope = c.Scope([]string{gitURL}, nil, gitURL)
		tree, err := Checkout(ctx, w.Client(t), o)
		if err == nil {
			t.Cleanup(func() { _ = tree.Close() })
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		return tree, bytes + last, err
	}
	check := func(what string, tree *fetch.Tree, err error, revision, x string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got, _ := tree.Root.ReadFile("chart/x")
		whole, _ := tree.Root.ReadFile("big")
		if string(got) != x || string(whole) != big || tree.Revision != revision {
			t.Errorf("%s: %q, %d bytes, %s", what, got, len(whole), tree.Revision)
		}
	}
	main := Options{Ref: Ref{Branch: "main"}}
	tree, n, err := read(main)
	check("cold", tree, err, "main@sha1:"+first, "x")
	if n < 1<<20 {
		t.Errorf("cold: %d bytes", n)
	}
	tree, n, err = read(main)
	check("warm", tree, err, "main@sha1:"+first, "x")
	if n > 4<<10 {
		t.Errorf("warm: %d bytes", n)
	}
	next := commit(t, w.git, "next", map[string]string{"chart/x": "x2"})
	tree, _, err = read(main)
	check("the next commit", tree, err, "main@sha1:"+next, "x2")
	tree, n, err = read(Options{Ref: Ref{Commit: first}})
	check("a commit", tree, err, "sha1:"+first, "x")
	if n > 4<<10 {
		t.Errorf("a commit whose objects are kept: %d bytes", n)
	}
	w.server.Close()
	tree, _, err = read(Options{Ref: Ref{Commit: first}})
	check("a commit, without a server", tree, err, "sha1:"+first, "x")

	offline := main
	offline.Memory.Missing = func(what string) error { return errors.New(what + " is missing") }
	tree, _, err = read(offline)
	check("offline", tree, err, tree.Revision, "x2")
	part := offline
	part.SparseCheckout = []string{"chart"}
	if tree, _, err = read(part); err != nil {
		t.Errorf("a part of what is kept: %v", err)
	} else if _, err := tree.Root.Stat("big"); err == nil {
		t.Error("a part of what is kept is all of it")
	}
	offline.Ref = Ref{Branch: "other"}
	if _, _, err = read(offline); err == nil || !strings.Contains(err.Error(), "the commit of spec.ref in "+gitURL+" is missing") {
		t.Errorf("got %v", err)
	}
	if err := os.RemoveAll(filepath.Join(cache.Path(dir), "blobs")); err != nil {
		t.Fatal(err)
	}
	if _, _, err = read(Options{Ref: main.Ref, Memory: offline.Memory}); err == nil || !strings.Contains(err.Error(), "commit ") {
		t.Errorf("got %v", err)
	}
}

// Of two packs the cache may have lost one.
func TestGitCacheLostPack(t *testing.T) {
	w := newGitWorld(t, "")
	run(t, w.git, "config", "uploadpack.allowFilter", "true")
	commit(t, w.git, "first", map[string]string{"chart/x": "x", "other/y": "y"})
	dir := t.TempDir()
	read := func() {
		t.Helper()
		c, err := cache.Open(dir, cache.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Ref: Ref{Branch: "main"}, SparseCheckout: []string{"chart"}}
		o.Memory.Cache, o.Memory.Scope = c, c.Scope([]string{gitURL}, nil, gitURL)
		fetchtest.WantFiles(t, w.mustClone(t, o), "chart/x=x")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	read()
	var packs []string
	_ = filepath.WalkDir(filepath.Join(cache.Path(dir), "blobs"), func(name string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			packs = append(packs, name)
		}
		return err
	})
	if len(packs) != 2 {
		t.Fatalf("%d packs", len(packs))
	}
	for _, name := range packs {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		read()
	}
}

// TestPackList reads the list of packs in a cache or bundle of an earlier version.
func TestPackList(t *testing.T) {
	var list packList
	if err := json.Unmarshal([]byte(`{"Packs":[{"Digest":"sha256:aa","Size":7}]}`), &list); err != nil || len(list.Packs) != 1 || list.Packs[0].Digest != "sha256:aa" {
		t.Errorf("%+v, %v", list, err)
	}
}
