package program

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCrowds runs validate over generators whose globs match as many files as a tree may have, and more. All are copied, or
// the run ends with an error at the operation, in bounded memory. The files are in an archive, which is faster to write.
func TestCrowds(t *testing.T) {
	const most = 100_000
	for _, tc := range []struct {
		name, copied string
		files        int
		code         int
		stderr       string
	}{
		{"all", `{from: "@a/**", to: "@artifact/"}`, most, 0, "5 valid, 0 invalid, 0 warnings\n"},
		{"twice", `{from: "@a/**", to: "@artifact/"}, {from: "@a/**", to: "@artifact/again/"}`, most/2 + 1, 1,
			"error: in/gen.yaml:14:60: ArtifactGenerator flux-system/gen: apps build failed: failed to apply copy operations: " +
				"failed to apply copy operation from '@a/**' to '@artifact/again/': more than 100000 files [HS170]\n"},
		{"more", `{from: "@a/**", to: "@artifact/"}`, most + 1, 1, "failed to extract tarball 'crowd.tgz': more than 100000 files [HS170]\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t, "podinfo 6.5.0\n")
			s.write("in/.git/HEAD", "ref: refs/heads/main\n")
			s.write("in/crowd.tgz", crowd(t, tc.files))
			s.write("in/gen.yaml", "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\n"+
				"metadata: {name: crowd, namespace: flux-system}\nspec:\n"+
				"  sources: [{alias: a, kind: GitRepository, name: flux-system}]\n"+
				"  artifacts: [{name: crowd, copy: [{from: \"@a/crowd.tgz\", to: \"@artifact/\", strategy: Extract}]}]\n"+
				"---\n"+
				"apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\n"+
				"metadata: {name: gen, namespace: flux-system}\nspec:\n"+
				"  sources: [{alias: a, kind: ExternalArtifact, name: crowd}]\n"+
				"  artifacts:\n  - {name: apps, copy: ["+tc.copied+"]}\n"+
				"---\n"+
				"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n"+
				"spec: {interval: 10m, prune: true, path: ./, sourceRef: {kind: ExternalArtifact, name: apps}}\n")
			cmd := s.command("validate", "-R", "-f", "in")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			used, err := peak(cmd)
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tc.code || !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("exit code %d, want %d; stderr:\n%.2000s", code, tc.code, &stderr)
			}
			if used == 0 || used > maxHostile*raceFactor {
				t.Errorf("needs %d MiB of memory", used>>20)
			}
		})
	}
}

// TestMergeMemory joins the records of 6,000 failed releases, with long messages, and prints them: the size of the records
// limits the memory.
func TestMergeMemory(t *testing.T) {
	s := newStage(t, "podinfo 6.5.0\n")
	s.write("all.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: repo, namespace: apps}\nspec: {interval: 5m, url: \"http://repo.test\"}\n---\n"+
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: seventh, namespace: apps}\n"+
		"spec: {interval: 5m, chart: {spec: {chart: quizzical, sourceRef: {kind: HelmRepository, name: repo}}}}\n")
	if out, err := s.command("fetch", "-f", "all.yaml", "-d", "one").CombinedOutput(); err == nil {
		t.Fatalf("nothing failed: %s", out)
	}
	one := s.files("one")[".helmsrc/v1/book"]
	if !strings.Contains(one, "seventh") || !strings.Contains(one, "quizzical") {
		t.Fatalf("records %q", s.files("one"))
	}
	size := 0
	for part := range 2 {
		var records strings.Builder
		for i := range 3000 {
			name := fmt.Sprintf("release-%d-%d", part, i)
			records.WriteString(strings.NewReplacer("seventh", name, "quizzical", name+strings.Repeat(" word", 300)).Replace(one))
		}
		s.write(fmt.Sprintf("part%d/.helmsrc/v1/book", part), records.String())
		size += records.Len()
	}
	used, err := peak(s.command("merge", "part0", "part1", "-d", "joined", "-o", "jsonl"))
	if _, failed := errors.AsType[*exec.ExitError](err); !failed {
		t.Errorf("ends with %v, and the objects have failed", err)
	}
	if joined := s.files("joined")[".helmsrc/v1/book"]; strings.Count(joined, "\n") != 6000 {
		t.Errorf("%d records were joined", strings.Count(joined, "\n"))
	}
	if most := int64(64<<20 + 8*size); used == 0 || used > most*raceFactor {
		t.Errorf("needs %d MiB of memory for %d MiB of records, and may need %d", used>>20, size>>20, most>>20)
	}
}

// TestValuesMemory prints 100,000 values, in a part of the memory that parsing a text of that many values may need.
func TestValuesMemory(t *testing.T) {
	s := newStage(t, "podinfo 6.5.0\n")
	var all strings.Builder
	all.WriteString("apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: repo, namespace: apps}\nspec: {interval: 5m, url: \"http://repo.test\"}\n---\n" +
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: podinfo, namespace: apps}\n" +
		"spec:\n  interval: 5m\n  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: repo}}}\n  values:\n")
	for i := range 100_000 {
		fmt.Fprintf(&all, "    key%06d: v%d\n", i, i)
	}
	s.write("all.yaml", all.String())
	cmd := s.command("values", "-f", "all.yaml", "podinfo")
	var out bytes.Buffer
	cmd.Stdout = &out
	used, err := peak(cmd)
	if printed := strings.Count(out.String(), "\n"); err != nil || printed != 100_000 {
		t.Errorf("ends with %v, and printed %d lines", err, printed)
	}
	if most := int64(320 << 20); used == 0 || used > most*raceFactor {
		t.Errorf("needs %d MiB of memory, and may need %d", used>>20, most>>20)
	}
}

// TestIndexMemory chooses a version in an index of a million charts, nearly as large as an index may be. Of all other charts,
// only their positions are kept.
func TestIndexMemory(t *testing.T) {
	s := newStage(t, "podinfo 6.5.0\n")
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for i := range 1_000_000 {
		fmt.Fprintf(&index, "  c%06d:\n  - name: c%06d\n    version: 1.0.0\n", i, i)
	}
	index.WriteString("    urls: [c.tgz]\n") // of the last one
	s.write("many/index.yaml", index.String())
	if err := s.world.Start("repomany", filepath.Join(s.dir, "many")); err != nil {
		t.Fatal(err)
	}
	s.write(stateDir+"/network", s.world.Network.String())
	s.write("all.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: repo}\nspec: {interval: 5m, url: \"http://repomany.test\"}\n---\n"+
		"apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmChart\nmetadata: {name: last}\nspec: {interval: 5m, chart: c999999, sourceRef: {kind: HelmRepository, name: repo}}\n")
	for _, run := range []string{"cold", "warm"} {
		cmd := s.command("resolve", "-f", "all.yaml")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		used, err := peak(cmd)
		if err != nil || !strings.Contains(out.String(), "2 resolved") {
			t.Fatalf("%s: %v\n%.2000s", run, err, &out)
		}
		if most := int64(352 << 20); used == 0 || used > most*raceFactor {
			t.Errorf("%s: needs %d MiB of memory, and may need %d", run, used>>20, most>>20)
		}
		t.Logf("%s: %d MiB", run, used>>20)
	}
}

// crowd returns an archive with many files: a kustomization with a HelmRepository, and empty files.
func crowd(t *testing.T, files int) string {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	add := func(name, text string) {
		err := tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))})
		if _, writing := tw.Write([]byte(text)); errors.Join(err, writing) != nil {
			t.Fatal(err, writing)
		}
	}
	add("kustomization.yaml", "resources: [repository.yaml]\n")
	add("repository.yaml", "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\n"+
		"metadata: {name: podinfo, namespace: apps}\nspec: {interval: 5m, url: \"http://repo.test\"}\n")
	for i := range files - 2 {
		add(fmt.Sprintf("d%d/f%d", i%500, i), "")
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
