package release

import (
	"crypto/sha256"
	"encoding/json"
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

// Stand-ins for the program, and for what .ci/release/assets makes: what is of archives does not depend on what is in them.
const (
	compiler = "#!/bin/sh\nwhile [ $# -gt 0 ]; do\n\tif [ \"$1\" = -o ]; then out=$2; fi\n\tshift\ndone\nexec go build -trimpath -buildvcs=false -o \"$out\" ./stand-in\n"
	program  = "package main\n\nfunc main() {}\n"
	assets   = "#!/bin/sh\nmkdir -p dist-assets/completions dist-assets/man kodata\ntouch dist-assets/THIRD-PARTY-NOTICES dist-assets/completions/helmsrc.bash dist-assets/completions/helmsrc.fish dist-assets/completions/_helmsrc\ncp man/*.1 dist-assets/man\n"
)

// released is the directory of a release for all platforms, with a stand-in for the program, signed with a key of its own: the
// keyless signature needs GitHub. Above it are the keys.
func released(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tree")
	execute(t, "../..", ".ci/release/copy", dir, "v1.2.3")
	execute(t, dir, "cosign", "generate-key-pair")
	edit(t, filepath.Join(dir, ".goreleaser.yaml"),
		"goos: [linux]", "goos: [linux, darwin, windows]\n    tool: ./compiler",
		"goarch: [amd64]", "goarch: [amd64, arm64]",
		`"${artifact}", --yes]`, `"${artifact}", --yes, --key=cosign.key, --tlog-upload=false]`)
	for name, text := range map[string]string{"compiler": compiler, "stand-in/main.go": program, ".ci/release/assets": assets} {
		write(t, filepath.Join(dir, name), text)
	}
	execute(t, dir, os.Getenv("GORELEASER"), "release", "--clean", "--skip=publish,validate,ko")
	return filepath.Join(dir, "dist")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
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
	write(t, name, strings.NewReplacer(pairs...).Replace(text))
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

// TestSBOMs: a release has a list of what is in the program of each archive, with the digest of that program, and its checksums
// have the lists.
func TestSBOMs(t *testing.T) {
	dist := released(t)
	sums := read(t, filepath.Join(dist, "checksums.txt"))
	lists, err := filepath.Glob(filepath.Join(dist, "*.cdx.json"))
	if err != nil || len(lists) != 6 {
		t.Fatalf("lists %q, %v", lists, err)
	}
	for _, list := range lists {
		text := read(t, list)
		name := strings.TrimSuffix(filepath.Base(list), ".cdx.json")
		unpack, program := "tar -xzOf "+name+".tar.gz helmsrc", fmt.Sprintf("%x  %s", sha256.Sum256([]byte(text)), filepath.Base(list))
		if strings.Contains(name, "_windows_") {
			unpack = "unzip -p " + name + ".zip helmsrc.exe"
		}
		if !strings.Contains(sums, program) {
			t.Errorf("the checksums have no %s:\n%s", program, sums)
		}
		sum, _, _ := strings.Cut(execute(t, dist, "bash", "-c", "set -o pipefail; "+unpack+" | sha256sum"), " ")
		for _, want := range []string{`"bomFormat": "CycloneDX"`, `"name": "std"`, `"name": "github.com/helmsrc/helmsrc"`, `"version": "v1.2.3"`, `"value": "` + sum + `"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s:\n%s", list, want, text)
			}
		}
	}
}

// statement is the provenance as GitHub's action writes it: what is in the file of checksums was built by this workflow.
func statement(t *testing.T, sums string) string {
	t.Helper()
	type subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	var subjects []subject
	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		subjects = append(subjects, subject{name, map[string]string{"sha256": sum}})
	}
	const repository, ref = "https://github.com/helmsrc/helmsrc", "refs/tags/v1.2.3"
	text, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://actions.github.io/buildtypes/workflow/v1",
				"externalParameters": map[string]any{"workflow": map[string]any{"ref": ref, "repository": repository, "path": ".github/workflows/release.yml"}},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": repository + "/.github/workflows/release.yml@" + ref}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSignature checks a release with the commands of the documentation, except that a key stands for the identity of a workflow.
// All that is released is a subject of the provenance. Checksums that were altered, and an archive, are refused, and so is the
// provenance of other archives.
func TestSignature(t *testing.T) {
	dist := released(t)
	sums := read(t, filepath.Join(dist, "checksums.txt"))
	for _, pattern := range []string{"*.tar.gz", "*.zip", "*.deb", "*.rpm", "*.apk", "*.cdx.json"} {
		files, err := filepath.Glob(filepath.Join(dist, pattern))
		if err != nil || len(files) == 0 {
			t.Errorf("no %s is released: %v", pattern, err)
		}
		for _, file := range files {
			if !strings.Contains(sums, "  "+filepath.Base(file)+"\n") {
				t.Errorf("the checksums have no %s", file)
			}
		}
	}
	attest := func(sums string) {
		t.Helper()
		write(t, filepath.Join(dist, "../statement.json"), statement(t, sums))
		execute(t, dist, "cosign", "attest-blob", "--statement=../statement.json", "--key=../cosign.key", "--tlog-upload=false", "--new-bundle-format", "--bundle=provenance.sigstore.json", "--yes")
	}
	attest(sums)
	_, page, _ := strings.Cut(read(t, filepath.Join(dist, "../docs/guides/ci.md")), "## Checking a release by hand")
	_, page, _ = strings.Cut(page, "```sh\n")
	page, _, _ = strings.Cut(page, "```")
	const keyless = `--certificate-identity "$identity" --certificate-oidc-issuer "$issuer"`
	if n := strings.Count(page, keyless); n != 2 || !strings.Contains(page, "cosign verify-blob ") || !strings.Contains(page, "cosign verify-blob-attestation ") || !strings.Contains(page, "sha256sum --check") {
		t.Fatalf("the commands of the guide are\n%s", page)
	}
	page = "set -e\n" + strings.ReplaceAll(page, keyless, "--key ../cosign.pub --insecure-ignore-tlog --trusted-root ../root.json")
	// A root that nobody is trusted by is in the place of the public one, which a key needs none of.
	write(t, filepath.Join(dist, "../root.json"), `{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`)
	refused := func(what, want string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", page)
		cmd.Dir = dist
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s, and the commands print\n%s", what, out)
		}
	}
	const archive = "helmsrc_1.2.3_linux_amd64.tar.gz"
	if out := execute(t, dist, "bash", "-c", page); !strings.Contains(out, archive+": OK") || !strings.Contains(out, "linux_amd64.cdx.json: OK") || strings.Count(out, "Verified OK") != 2 {
		t.Errorf("the commands print\n%s", out)
	}
	for name, want := range map[string]string{"checksums.txt": "improperly formatted", archive: archive + ": FAILED"} {
		before := read(t, filepath.Join(dist, name))
		write(t, filepath.Join(dist, name), before+" ")
		refused(name+" was altered", want)
		write(t, filepath.Join(dist, name), before)
	}
	attest(strings.Repeat("0", 64) + "  " + archive + "\n")
	refused("the provenance is of another archive", "digest")
	write(t, filepath.Join(dist, "provenance.sigstore.json"), "{}")
	refused("the provenance is empty", "unsupported media type")
}
