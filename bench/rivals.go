//go:build bench

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// The same tasks for other programs. The tables omit programs that are not installed.

const (
	gitPath       = "/git/"
	gitRepository = "charts"

	// gitFiles is the number of files in the repository besides its chart, gitFileSize their size in bytes.
	gitFiles, gitFileSize = 200, 20 << 10
)

// writeGit makes a repository with a chart among other files, if git is installed.
func writeGit(data string, smoke bool) error {
	if _, err := exec.LookPath("git"); err != nil {
		return nil //nolint:nilerr // it is optional
	}
	repository, err := helmtest.NewGit(filepath.Join(data, strings.Trim(gitPath, "/"), gitRepository))
	if err != nil {
		return err
	}
	files := map[string]string{
		"charts/app/Chart.yaml":              "apiVersion: v2\nname: app\nversion: 1.0.0\n",
		"charts/app/values.yaml":             "a: b\n",
		"charts/app/templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
	}
	for i := range gitFiles {
		if smoke && i > 5 {
			break
		}
		files[fmt.Sprintf("docs/%03d.txt", i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), gitFileSize/8)
	}
	_, err = repository.Commit("charts", files)
	return err
}

// cloned fetches a chart from a Git repository.
func cloned() []contender {
	fetch := func(j *job) ([]string, error) {
		source := strings.Replace(helmRepository("http://"+j.addr+gitPath+gitRepository, ", ref: {branch: main}"), "kind: HelmRepository", "kind: GitRepository", 1)
		chart := strings.Replace(helmChart("chart", "./charts/app", "*"), "kind: HelmRepository", "kind: GitRepository", 1)
		file, err := j.manifests(source, chart)
		return []string{"fetch", "-f", file}, err
	}
	return []contender{
		{name: "git clone --depth 1", tool: "git", args: func(j *job) ([]string, error) {
			return []string{"clone", "-q", "--depth", "1", "http://" + j.addr + gitPath + gitRepository, filepath.Join(j.work, "clone")}, nil
		}},
		{name: "helmsrc fetch, cold", tool: "helmsrc", args: fetch},
		{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: fetch},
		{name: "helmsrc fetch, cold (before)", tool: "before", args: fetch},
	}
}

// verified verifies the signature of a chart with a key.
func verified() []contender {
	verify := func(j *job) ([]string, error) {
		key, err := os.ReadFile(filepath.Join(j.data, keyFile))
		if err != nil {
			return nil, err
		}
		secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData:\n  cosign.pub: |\n    " + strings.ReplaceAll(strings.TrimSpace(string(key)), "\n", "\n    ") + "\n"
		chart := strings.TrimSuffix(strings.TrimSpace(helmChart("chart", signedChart, exactVersion(j.scale))), "}") + ", verify: {provider: cosign, secretRef: {name: key}}}\n"
		file, err := j.manifests(helmRepository("oci://"+j.addr+"/charts", ", type: oci, insecure: true"), chart, secret)
		return []string{"verify", "-f", file}, err
	}
	return []contender{
		{name: "cosign verify --key", tool: "cosign", args: func(j *job) ([]string, error) {
			image := j.addr + "/charts/" + signedChart + ":" + exactVersion(j.scale)
			return []string{"verify", "--key", filepath.Join(j.data, keyFile), "--insecure-ignore-tlog", "--allow-http-registry", image}, nil
		}},
		{name: "helmsrc verify", tool: "helmsrc", args: verify},
		{name: "helmsrc verify (before)", tool: "before", args: verify},
	}
}
