package action

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// cached is a runner whose helmsrc has left an artifact and the record of its source.
func cached(t *testing.T, source string) *runner {
	t.Helper()
	r := newRunner(t)
	artifacts := r.dir + "/temp/helmsrc/artifacts"
	for name, content := range map[string]string{
		"helmchart/apps/podinfo/podinfo-6.9.2.tgz":       "archive",
		".helmsrc/v1/helmrepository/apps/podinfo.json":   `{"formatVersion":1,"object":{"spec":` + source + `},"status":{"at":"now"}}`,
		".helmsrc/v1/helmrepository/apps/podinfo.lock":   "",
		"helmrepository/apps/podinfo/index-0123abc.yaml": "entries: {}",
	} {
		r.check(os.MkdirAll(filepath.Dir(filepath.Join(artifacts, name)), 0o755))
		r.check(os.WriteFile(filepath.Join(artifacts, name), []byte(content), 0o600))
	}
	for k, v := range map[string]string{
		"CACHE": "true", "GITHUB_REPOSITORY": "owner/charts", "GITHUB_JOB": "fetch", "PULL": "", "HEAD": "", "PRIVATE": "false", "MATCHED": "",
		"HELMSRC_ARTIFACTS_DIR": artifacts,
	} {
		r.env[k] = v
	}
	return r
}

// cache runs the script and returns the key that it gives out.
func (r *runner) cache(phase string) (key, out string) {
	r.t.Helper()
	_ = os.Remove(r.dir + "/output")
	out = r.runWith("cache.sh", 0, phase)
	if m := regexp.MustCompile(`(?m)^key=(.*)$`).FindStringSubmatch(r.read("output")); m != nil {
		key = m[1]
	}
	return key, out
}

const public = `{"provider":"generic","url":"https://charts.example.com"}`

// TestCache: what is restored is the newest of the job, and what is saved is named by its content.
func TestCache(t *testing.T) {
	r := cached(t, public)
	if key, _ := r.cache("restore"); key != "helmsrc-v1-Linux-fetch-" {
		t.Errorf("restored with %q", key)
	}
	key, _ := r.cache("save")
	if !regexp.MustCompile(`^helmsrc-v1-Linux-fetch-[0-9a-f]{64}$`).MatchString(key) {
		t.Errorf("saved as %q", key)
	}
	r.env["GITHUB_RUN_ID"] = "4711"
	r.check(os.WriteFile(r.dir+"/temp/helmsrc/artifacts/.helmsrc/v1/helmrepository/apps/podinfo.json", []byte(`{"at":"later"}`), 0o600))
	if again, _ := r.cache("save"); again != key {
		t.Errorf("the same artifacts are saved as %q and %q", key, again)
	}
	r.env["MATCHED"] = key
	if again, _ := r.cache("save"); again != "" {
		t.Errorf("saved once more, as %q", again)
	}
	r.check(os.WriteFile(r.dir+"/temp/helmsrc/artifacts/helmchart/apps/podinfo/podinfo-6.9.2.tgz", []byte("changed"), 0o600))
	if other, _ := r.cache("save"); other == "" || other == key {
		t.Errorf("other artifacts are saved as %q", other)
	}
	r.check(os.RemoveAll(r.dir + "/temp/helmsrc/artifacts"))
	if none, _ := r.cache("save"); none != "" {
		t.Errorf("nothing is saved as %q", none)
	}
	r.env["CACHE"] = "false"
	if off, _ := r.cache("restore"); off != "" {
		t.Errorf("restored with %q though it is off", off)
	}
	r.env["CACHE"] = "yes"
	r.holds(r.runWith("cache.sh", 2, "restore"), "the input cache is neither true nor false")
}

// TestCacheOfStrangers: a pull request from another repository neither gets the cache of the base branch nor leaves anything in it.
func TestCacheOfStrangers(t *testing.T) {
	for _, tt := range []struct {
		name, pull, head string
		own              bool
	}{
		{"a push", "", "", true},
		{"a branch of this repository", "7", "owner/charts", true},
		{"a fork", "7", "stranger/charts", false},
		{"a fork that was deleted", "7", "", false},
		{"a comment on a pull request", "https://api.github.com/repos/owner/charts/pulls/7", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := cached(t, public)
			r.env["PULL"], r.env["HEAD"] = tt.pull, tt.head
			restore, out := r.cache("restore")
			save, _ := r.cache("save")
			if got := restore != ""; got != tt.own || (save != "") != tt.own {
				t.Errorf("restored with %q, saved as %q", restore, save)
			}
			if said := strings.Contains(out, "the cache is left alone"); said == tt.own {
				t.Error(out)
			}
		})
	}
}

// TestCacheOfCharts: what credentials may have fetched is not left where a fork's pull request can read it.
func TestCacheOfCharts(t *testing.T) {
	login := func(r *runner, name string) {
		r.check(os.MkdirAll(filepath.Dir(filepath.Join(r.dir, name)), 0o755))
		r.check(os.WriteFile(filepath.Join(r.dir, name), []byte(`{"auths":{"registry.example.com":{"auth":"eDp5"}}}`), 0o600))
	}
	for _, tt := range []struct {
		name, source string
		change       func(*runner)
		saved        bool
	}{
		{"public", public, func(*runner) {}, true},
		{"a Secret", `{"secretRef":{"name":"login"},"url":"https://charts.example.com"}`, func(*runner) {}, false},
		{"a certificate", `{"certSecretRef":{"name":"tls"},"url":"https://charts.example.com"}`, func(*runner) {}, false},
		{"a cloud", `{"provider":"aws","url":"oci://1.dkr.ecr.eu-west-1.amazonaws.com/x"}`, func(*runner) {}, false},
		{"docker's login", public, func(r *runner) { login(r, ".docker/config.json") }, false},
		{"docker's login elsewhere", public, func(r *runner) { login(r, "d/config.json"); r.env["DOCKER_CONFIG"] = r.dir + "/d" }, false},
		{"docker without a login", public, func(r *runner) {
			login(r, ".docker/config.json")
			r.check(os.WriteFile(r.dir+"/.docker/config.json", []byte(`{"auths":{}}`), 0o600))
		}, true},
		{"Helm's login", public, func(r *runner) { login(r, ".config/helm/registry/config.json") }, false},
		{"a Secret, in a private repository", `{"secretRef":{"name":"login"}}`, func(r *runner) { r.env["PRIVATE"] = "true" }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := cached(t, tt.source)
			tt.change(r)
			key, out := r.cache("save")
			if saved := key != ""; saved != tt.saved || strings.Contains(out, "the cache is not saved") == tt.saved {
				t.Errorf("saved as %q\n%s", key, out)
			}
		})
	}
}

// TestCacheOfLock: with a lock file the key is its digest, unless helmsrc failed; what is private leaves the cache before a
// public repository saves it.
func TestCacheOfLock(t *testing.T) {
	r := cached(t, public)
	lock, kept := r.dir+"/helmsrc.lock", r.dir+"/temp/helmsrc/cache"
	r.check(os.WriteFile(lock, []byte("apiVersion: helmsrc.dev/v1alpha1\n"), 0o600))
	r.check(os.MkdirAll(kept, 0o700))
	r.env["LOCK"], r.env["HELMSRC_CACHE_DIR"], r.env["CODE"] = lock, kept, "1"
	restored, _ := r.cache("restore")
	if !regexp.MustCompile(`^helmsrc-v1-Linux-fetch-lock-[0-9a-f]{64}$`).MatchString(restored) {
		t.Errorf("restored with %q", restored)
	}
	if failed, _ := r.cache("save"); failed == "" || strings.Contains(failed, "lock") {
		t.Errorf("a run that failed is saved as %q", failed)
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("without a helmsrc that can remove what is private, the cache was kept")
	}
	r.env["CODE"] = "0"
	if saved, _ := r.cache("save"); saved != restored {
		t.Errorf("saved as %q, restored with %q", saved, restored)
	}
	r.env["MATCHED"] = restored
	if again, _ := r.cache("save"); again != "" {
		t.Errorf("saved again as %q", again)
	}
}
