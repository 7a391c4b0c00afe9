package git

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// BenchmarkGit fetches from a repository of 50 MB in 1,000 files, of which one chart has 10.
func BenchmarkGit(b *testing.B) {
	root := b.TempDir()
	g, err := helmtest.NewGit(filepath.Join(root, "app.git"))
	if err != nil {
		b.Fatal(err)
	}
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("charts/%d/file%d", i%100, i)] = fmt.Sprint(i) + noise(50_000)
	}
	if _, err := g.Commit("first", files); err != nil {
		b.Fatal(err)
	}
	if _, err := g.Run("config", "uploadpack.allowFilter", "true"); err != nil {
		b.Fatal(err)
	}
	h, err := helmtest.GitHTTP(root, "")
	if err != nil {
		b.Fatal(err)
	}
	network := helmtest.NewNetwork()
	server, err := helmtest.Serve(network, "git.test:80", nil, h)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	c := fetch.NewClient(fetch.Config{Dial: network.Dial, Now: time.Now})
	for name, paths := range map[string][]string{"whole": nil, "chart": {"charts/7"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				tree, err := Checkout(b.Context(), c, Options{URL: gitURL, Ref: Ref{Branch: "main"}, SparseCheckout: paths, TempDir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				if err := tree.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// go-git's own clone: it can leave out only the history.
	b.Run("go-git clone", func(b *testing.B) {
		http := &http.Client{Transport: &http.Transport{DialContext: network.Dial}}
		client.InstallProtocol("http", githttp.NewClient(http))
		b.Cleanup(func() { client.InstallProtocol("http", githttp.DefaultClient) })
		for b.Loop() {
			options := &git.CloneOptions{URL: gitURL, Depth: 1, SingleBranch: true, ReferenceName: "refs/heads/main", Tags: git.NoTags}
			if _, err := git.PlainCloneContext(b.Context(), b.TempDir(), false, options); err != nil {
				b.Fatal(err)
			}
		}
	})
	// The git program on the same work, without a server between.
	b.Run("git clone", func(b *testing.B) {
		for b.Loop() {
			dir := b.TempDir()
			out, err := exec.CommandContext(b.Context(), "git", "clone", "-q", "--depth=1", "file://"+g.Dir, dir).CombinedOutput()
			if err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
}
