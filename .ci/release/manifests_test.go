package release

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// execute runs a program that has to succeed, and returns what it prints.
func execute(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "COSIGN_PASSWORD=", "HOMEBREW_TAP_TOKEN=none", "BASE_IMAGE=none")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Stand-ins for the compiler and for what .ci/release/assets makes: manifests and signatures are of archives, whatever is in them.
const (
	compiler = "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n\tif [ \"$1\" = -o ]; then\n\t\tprintf 'for %s on %s' \"$GOOS\" \"$GOARCH\" >\"$2\"\n\t\tchmod +x \"$2\"\n\tfi\n\tshift\ndone\n"
	assets   = "#!/bin/sh\nmkdir -p dist-assets/completions dist-assets/man kodata\ntouch dist-assets/THIRD-PARTY-NOTICES dist-assets/completions/helmsrc.bash dist-assets/completions/helmsrc.fish dist-assets/completions/_helmsrc\ncp man/*.1 dist-assets/man\n"
)

// released is the directory of a release for all platforms, with stand-ins for the programs, signed with a key of its own: the
// keyless signature needs GitHub. Above it is the public key.
func released(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	execute(t, "../..", ".ci/release/copy", dir, "v1.2.3")
	execute(t, dir, "cosign", "generate-key-pair")
	edit(t, filepath.Join(dir, ".goreleaser.yaml"),
		"goos: [linux]", "goos: [linux, darwin, windows]\n    tool: ./compiler",
		"goarch: [amd64]", "goarch: [amd64, arm64]",
		`"${artifact}", --yes]`, `"${artifact}", --yes, --key=cosign.key, --tlog-upload=false]`)
	for name, text := range map[string]string{"compiler": compiler, ".ci/release/assets": assets} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, dir, os.Getenv("GORELEASER"), "release", "--clean", "--skip=publish,validate,sbom,ko")
	return filepath.Join(dir, "dist")
}

// edit replaces texts that have to be in a file.
func edit(t *testing.T, name string, pairs ...string) {
	t.Helper()
	text := read(t, name)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %s", name, pairs[i])
		}
	}
	if err := os.WriteFile(name, []byte(strings.NewReplacer(pairs...).Replace(text)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestManifests makes the manifests for package managers. What each has to install is an archive of the release, with its digest,
// and the program that it names is there; tools of the managers judge the rest as far as Debian and Go modules have them.
func TestManifests(t *testing.T) {
	dist := released(t)
	execute(t, dist, "validate-krew-manifest", "-manifest", "krew/helmsrc.yaml", "-skip-install")
	execute(t, dist, "ruby", "-c", "homebrew/Casks/helmsrc.rb")
	execute(t, dist, "nix-instantiate", "--parse", "nix/pkgs/helmsrc/default.nix")
	const winget = "winget/manifests/h/helmsrc/helmsrc/1.2.3/helmsrc.helmsrc"
	for _, kind := range []string{"", ".installer", ".locale.en-US"} {
		if text := read(t, filepath.Join(dist, winget+kind+".yaml")); !strings.Contains(text, "PackageVersion: 1.2.3\n") {
			t.Errorf("the manifest%s for winget has another version:\n%s", kind, text)
		}
	}
	const unix, windows = "(?:linux|darwin)", "windows"
	for name, want := range map[string]struct {
		systems  string
		archives int
	}{
		"krew/helmsrc.yaml":            {"(?:linux|darwin|windows)", 6},
		"homebrew/Casks/helmsrc.rb":    {unix, 4},
		"nix/pkgs/helmsrc/default.nix": {unix, 4},
		"scoop/helmsrc.json":           {windows, 2},
		winget + ".installer.yaml":     {windows, 2},
	} {
		text := strings.ReplaceAll(read(t, filepath.Join(dist, name)), "#{version}", "1.2.3")
		found := map[string]bool{}
		for _, url := range regexp.MustCompile(`https://github\.com/helmsrc/helmsrc/releases/download/v1\.2\.3/(helmsrc_1\.2\.3_`+want.systems+`_\w+\.(?:tar\.gz|zip))`).FindAllStringSubmatch(text, -1) {
			found[url[1]] = true
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, filepath.Join(dist, url[1])))))
			if strings.HasPrefix(name, "nix/") {
				sum = strings.TrimSpace(execute(t, dist, "nix-hash", "--type", "sha256", "--to-base32", sum))
			}
			if !strings.Contains(text, sum) {
				t.Errorf("%s has another digest than %s of %s", name, sum, url[1])
			}
		}
		if len(found) != want.archives {
			t.Errorf("%s has archives %v\n%s", name, found, text)
		}
	}
	config := read(t, filepath.Join(dist, "config.yaml"))
	for _, name := range []string{"homebrew/Casks/helmsrc.rb", "krew/helmsrc.yaml", "scoop/helmsrc.json", "nix/pkgs/helmsrc/default.nix", "winget/manifests/**/*.yaml"} {
		if !strings.Contains(config, "glob: dist/"+name+"\n") {
			t.Errorf("%s is no file of the release", name)
		}
	}
}

// TestSignature checks a release with the commands of the documentation, except that a key stands for the identity of a workflow
// and that gh has nothing to say. Checksums that were altered, and an archive, are refused.
func TestSignature(t *testing.T) {
	dist := released(t)
	_, page, _ := strings.Cut(read(t, filepath.Join(dist, "../docs/guides/ci.md")), "## Checking a release by hand")
	_, page, _ = strings.Cut(page, "```sh\n")
	page, _, _ = strings.Cut(page, "```")
	page = regexp.MustCompile(`(?m)^gh attestation verify .*\n`).ReplaceAllString(page, "")
	page = regexp.MustCompile(`--certificate-identity \S+`).ReplaceAllString(page, "--key ../cosign.pub")
	page = regexp.MustCompile(`--certificate-oidc-issuer \S+`).ReplaceAllString(page, "--insecure-ignore-tlog --trusted-root ../root.json")
	if !strings.Contains(page, "cosign verify-blob ") || !strings.Contains(page, "--key") || !strings.Contains(page, "--insecure") || !strings.Contains(page, "sha256sum --check") {
		t.Fatalf("the commands of the guide are\n%s", page)
	}
	page = "set -e\n" + page
	// A root that nobody is trusted by is in the place of the public one, which a key needs none of.
	if err := os.WriteFile(filepath.Join(dist, "../root.json"), []byte(`{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := execute(t, dist, "bash", "-c", page); !strings.Contains(out, "helmsrc_1.2.3_linux_amd64.tar.gz: OK") || !strings.Contains(out, "Verified OK") {
		t.Errorf("the commands print\n%s", out)
	}
	for _, name := range []string{"checksums.txt", "helmsrc_1.2.3_linux_amd64.tar.gz"} {
		before := read(t, filepath.Join(dist, name))
		if err := os.WriteFile(filepath.Join(dist, name), []byte(before+" "), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", page)
		cmd.Dir = dist
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s was altered, and the commands succeed:\n%s", name, out)
		}
		if err := os.WriteFile(filepath.Join(dist, name), []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
