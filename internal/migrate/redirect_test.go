package migrate

import (
	"strings"
	"testing"
)

const mirrored = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: repo, namespace: apps}
spec:
  interval: 1h
  url: https://charts.test
  secretRef: {name: login}
`

// TestRedirect writes the URL of a mirror, or reports why it stays.
func TestRedirect(t *testing.T) {
	t.Parallel()
	const mirror = "oci://mirror.test/charts"
	const lost = "repo: spec.secretRef is left out: it is for the source, not for the mirror"
	for _, test := range []struct {
		name             string
		urls             []string // of the objects that the document becomes
		refusal, written string
		refused, lost    string
		patched          bool
	}{
		{name: "redirected", urls: []string{mirror}, written: "  interval: 1h\n  url: " + mirror + "\n", lost: lost},
		{name: "in two clusters", urls: []string{mirror, mirror}, written: "  url: " + mirror + "\n", lost: lost},
		{name: "no source of the mirror", urls: []string{""}},
		{name: "there already", urls: []string{"https://charts.test"}},
		{name: "two URLs", urls: []string{mirror, mirror + "/two"}, refused: "repo: its url is not changed: it differs in another cluster"},
		{name: "one stays", urls: []string{mirror, ""}, refused: "repo: its url is not changed: it differs in another cluster"},
		{name: "patched", urls: []string{mirror}, patched: true, refused: "repo: its url is not changed: the applied object differs in spec.url: a kustomization, a variable or an alias changes it, edit it there"},
		{name: "patched, and no source of the mirror", urls: []string{""}, patched: true},
		{name: "refused", urls: []string{""}, refusal: "it is too long", refused: "repo: its url is not changed: it is too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := inputOf(t, mirrored)
			if test.patched {
				in.Objects[0].Content["spec"].(map[string]any)["url"] = "https://other.test"
			}
			urls := map[*Object]string{in.Objects[0]: test.urls[0]}
			for _, url := range test.urls[1:] {
				o := *in.Objects[0]
				in.Objects = append(in.Objects, &o)
				urls[&o] = url
			}
			result := Redirect(in, Mirror{URL: func(o *Object) (string, string) { return urls[o], test.refusal }})
			if refused, lost := texts(result.Refused), texts(result.Lost); refused != test.refused || lost != test.lost || (len(result.Files) > 0) != (test.written != "") {
				t.Fatalf("%d files, refused %q, lost %q", len(result.Files), refused, lost)
			}
			if test.written != "" && (!strings.Contains(string(result.Files[0].Text), test.written) || !strings.Contains(string(result.Files[0].Text), "type: oci\n") || strings.Contains(string(result.Files[0].Text), "secretRef")) {
				t.Errorf("got\n%s", result.Files[0].Text)
			}
		})
	}
}

// TestRedirectPlain sets that a mirror has no TLS, and removes the access to the source.
func TestRedirectPlain(t *testing.T) {
	t.Parallel()
	before := strings.Replace(mirrored, "  secretRef:", "  insecure: false\n  passCredentials: true\n  provider: aws\n  secretRef:", 1)
	for plain, want := range map[bool]string{true: "  insecure: true\n", false: "  url: oci://mirror.test/charts\n  type: oci\n"} {
		result := Redirect(inputOf(t, before), Mirror{Plain: plain, URL: func(*Object) (string, string) { return "oci://mirror.test/charts", "" }})
		got := string(result.Files[0].Text)
		if !strings.Contains(got, want) || strings.Contains(got, "insecure") != plain || strings.Contains(got, "passCredentials") || strings.Contains(got, "provider") {
			t.Errorf("plain %v: got\n%s", plain, got)
		}
	}
}

// TestFreeNames names sources by their URLs.
func TestFreeNames(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://charts.test/Stable": "charts-test-stable", "ssh://git@git.test:22/charts.git": "git-test-22-charts", "https://": "charts",
		"https://charts.test/" + strings.Repeat("x", 49): strings.Repeat("x", 49), "https://repo.test": "repo-test-2",
	} {
		in := inputOf(t, strings.Replace(mirrored, "name: repo,", "name: repo-test,", 1))
		p := &planner{in: in, result: &Result{}}
		p.read()
		if got := p.free("HelmRepository", "apps", url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
