package git

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// hostileObject writes an object that Git itself would refuse to make.
func hostileObject(t *testing.T, g *helmtest.Git, kind, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, g, "hash-object", "-t", kind, "--literally", "-w", file)
}

func treeEntry(t *testing.T, mode, name, hash string) string {
	t.Helper()
	raw, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	return mode + " " + name + "\x00" + string(raw)
}

// No entry of a repository is written outside of the tree.
func TestGitHostileTrees(t *testing.T) {
	w := newGitWorld(t, "")
	commit(t, w.git, "first", map[string]string{"a": "evil"})
	blob := run(t, w.git, "rev-parse", ":a")
	link := hostileObject(t, w.git, "blob", "..")
	dir := hostileObject(t, w.git, "tree", treeEntry(t, "100644", "x", blob))
	const byServer = "repository corruption on the remote side" // Git does not send it
	for name, test := range map[string]struct{ content, want string }{
		"dot dot":        {treeEntry(t, "40000", "..", dir), `the repository contains a file with the invalid name ".."`},
		"dot":            {treeEntry(t, "40000", ".", dir), `the repository contains a file with the invalid name "."`},
		"slash":          {treeEntry(t, "100644", "../x", blob), `the repository contains a file with the invalid name "../x"`},
		"absolute":       {treeEntry(t, "100644", "/tmp/x", blob), `the repository contains a file with the invalid name "/tmp/x"`},
		"git directory":  {treeEntry(t, "40000", ".GIT", dir), `the repository contains a file with the invalid name ".GIT"`},
		"empty":          {treeEntry(t, "100644", "", blob), byServer},
		"file and dir":   {treeEntry(t, "100644", "d", blob) + treeEntry(t, "40000", "d", dir), "mkdirat d: file exists"},
		"missing object": {treeEntry(t, "100644", "m", strings.Repeat("12", 20)), byServer},
	} {
		t.Run(name, func(t *testing.T) {
			hash := hostileObject(t, w.git, "tree", test.content)
			head := run(t, w.git, "commit-tree", "-m", "x", hash)
			run(t, w.git, "update-ref", "refs/heads/evil", head)
			tree, err := w.clone(t, Options{Ref: Ref{Branch: "evil"}})
			if err == nil {
				t.Fatalf("no error, files %q", fetchtest.List(t, tree))
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q, want %q", err, test.want)
			}
		})
	}
	t.Run("link before directory", func(t *testing.T) {
		hash := hostileObject(t, w.git, "tree", treeEntry(t, "120000", "d", link)+treeEntry(t, "40000", "d", dir))
		run(t, w.git, "update-ref", "refs/heads/evil", run(t, w.git, "commit-tree", "-m", "x", hash))
		fetchtest.WantFiles(t, w.mustClone(t, Options{Ref: Ref{Branch: "evil"}}), "d/x=evil")
	})
	t.Run("a tree that grows without end", func(t *testing.T) {
		for range 30 {
			var b strings.Builder
			for _, name := range "abcdefghij" {
				b.WriteString(treeEntry(t, "40000", string(name), dir))
			}
			dir = hostileObject(t, w.git, "tree", b.String())
		}
		run(t, w.git, "update-ref", "refs/heads/evil", run(t, w.git, "commit-tree", "-m", "x", dir))
		_, err := w.clone(t, Options{Ref: Ref{Branch: "evil"}, Limits: Limits{Files: 500}})
		if err == nil || !strings.Contains(err.Error(), "number of files") {
			t.Errorf("error %v", err)
		}
	})
}
