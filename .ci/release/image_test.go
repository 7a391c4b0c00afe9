// Package release runs what a release is made of: the image, as an unprivileged user, the signature and the manifests for package
// managers, which goreleaser makes.
package release

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const user = "65532"

// base is an image in the place of distroless/static:nonroot, which is in no registry that a test reaches: no file but those of
// users, and the same user.
func base(t *testing.T) v1.Image {
	t.Helper()
	image, err := mutate.Config(empty.Image, v1.Config{User: user, Env: []string{"PATH=/usr/bin"}, WorkingDir: "/home/nonroot"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file.OS, file.Architecture = "linux", "amd64"
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return image
}

// TestImage has goreleaser, which GORELEASER names, push the image of a release of this tree to a registry on loopback. It is kept
// as an OCI layout, without a daemon, and runs as an unprivileged user whose root cannot be written to. Only root can do so.
func TestImage(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	bottom, err := name.ParseReference(host + "/base:nonroot")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(bottom, base(t)); err != nil {
		t.Fatal(err)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	run(t, "", "./copy", tree, "v0.0.1")
	config := filepath.Join(tree, ".goreleaser.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "base_image: gcr.io/distroless/static-debian12:nonroot", "base_image: "+bottom.String(), 1)
	before, krew, _ := strings.Cut(changed, "\nkrews:\n") // which is not among what can be skipped, and wants archives
	_, after, _ := strings.Cut(krew, "\n\n")
	changed = before + "\n" + after
	changed = strings.Replace(changed, "\nrelease:\n", "\nrelease:\n  disable: true\n", 1)
	own := filepath.Join(t.TempDir(), "release.yaml")
	if err := os.WriteFile(own, []byte(changed), 0o600); err != nil || changed == string(text) {
		t.Fatal(err)
	}
	run(t, tree, os.Getenv("GORELEASER"), "release", "--clean", "--config="+own, "--skip=announce,archive,homebrew,nfpm,sbom,sign,winget,scoop,nix",
		"KO_DOCKER_REPO="+host+"/helmsrc", "GITHUB_TOKEN=none", "HOMEBREW_TAP_TOKEN=none", "BASE_IMAGE="+bottom.String())
	ref, err := name.ParseReference(host + "/helmsrc:v0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	path, err := layout.Write(filepath.Join(t.TempDir(), "layout"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(pulled); err != nil {
		t.Fatal(err)
	}
	digest, err := pulled.Digest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := path.Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	unpack(t, image, root)
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Config.User != user || len(file.Config.Entrypoint) != 1 || file.Config.Labels["org.opencontainers.image.version"] != "0.0.1" {
		shown, _ := json.Marshal(file.Config)
		t.Errorf("the image has %s", shown)
	}
	program := file.Config.Entrypoint[0]
	built := run(t, "", "go", "version", "-m", filepath.Join(root, program))
	for _, want := range []string{"-tags=kustomize_disable_go_plugin_support", "-trimpath=true", "CGO_ENABLED=0"} {
		if !strings.Contains(built, want) {
			t.Errorf("the program of the image is built without %s:\n%s", want, built[strings.LastIndex(built, "\tbuild"):])
		}
	}
	notices, err := os.ReadFile(filepath.Join(root, "var/run/ko/THIRD-PARTY-NOTICES"))
	if err != nil || !bytes.Contains(notices, []byte("github.com/spf13/cobra v")) {
		t.Errorf("the notices: %v", err)
	}

	script := `set -e
mount --bind "$1" "$1"
mkdir -p "$1/work" && chown ` + user + ` "$1/work" && mount -t tmpfs -o mode=777 none "$1/work"
mount -o remount,bind,ro "$1"
at=$1; shift
exec chroot --userspec=` + user + `:` + user + ` "$at" "$@"`
	in := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "--propagation=private", "sh", "-c", script, "sh", root, program}, args...)...)
		cmd.Env = append(file.Config.Env, "PATH="+os.Getenv("PATH"))
		cmd.Stdin = strings.NewReader("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: a, namespace: b}\nspec: {interval: 5m, url: \"https://charts.example.org\"}\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := in("version"); err != nil || !strings.HasPrefix(out, "helmsrc v0.0.1 ") {
		t.Errorf("version: %v\n%s", err, out)
	}
	if out, err := in("validate", "-f", "-"); err != nil || !strings.Contains(out, "1 valid") {
		t.Errorf("validate: %v\n%s", err, out)
	}
	if out, err := in("fetch", "-f", "-", "-d", "/artifacts"); err == nil || !strings.Contains(out, "/artifacts cannot be created") {
		t.Errorf("fetch to where nothing can be written: %v\n%s", err, out)
	}
	if out, err := in("fetch", "-f", "-", "-d", "/work/artifacts", "--no-cache", "--offline"); err == nil || !strings.Contains(out, "HS209") {
		t.Errorf("fetch without a network: %v\n%s", err, out)
	}
}

// run runs a program, and returns what it prints. Arguments of the form NAME=VALUE in capitals are for its environment.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var env, rest []string
	for _, arg := range args {
		if before, _, ok := strings.Cut(arg, "="); ok && before == strings.ToUpper(before) {
			env = append(env, arg)
			continue
		}
		rest = append(rest, arg)
	}
	cmd := exec.CommandContext(t.Context(), rest[0], rest[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", rest, err, out)
	}
	return string(out)
}

// unpack writes the files of an image.
func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	for in := tar.NewReader(files); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(root, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(at, 0o755)
		case tar.TypeReg:
			var content []byte
			if content, err = io.ReadAll(in); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, content, h.FileInfo().Mode()))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
