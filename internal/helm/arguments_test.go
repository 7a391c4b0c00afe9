package helm

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// flags are the allowed flags of a call; true means that the name is followed by a value.
var flags = map[string]bool{
	"--namespace=": true, "--values=": true, "--include-crds": false, "--is-upgrade": false, "--skip-tests": false,
	"--skip-schema-validation": false, "--kube-version=": true, "--api-versions=": true, "--set=": true,
}

// No text becomes a flag: all flags are known ones, and names come after --, and do not begin with a dash.
func FuzzArguments(f *testing.F) {
	for _, name := range []string{"web", "-f", "--post-renderer=/tmp/e", "--", "", "a.b-c", "A", "a\n--repo=x", "web/-f", strings.Repeat("a", 54)} {
		f.Add(name, "apps", "web.tgz", "1.33", "a/v1", false)
		f.Add("web", name, "web.tgz", "", "", true)
		f.Add("web", "apps", name, name, name, true)
	}
	f.Fuzz(func(t *testing.T, name, namespace, chart, kube, api string, on bool) {
		r := Release{
			Name: name, Namespace: namespace, Chart: chart, KubeVersion: kube, APIVersions: []string{api}, Integers: []string{api},
			CRDs: on, Upgrade: on, NoTests: on, NoSchema: on,
		}
		args, err := r.arguments()
		if err != nil {
			var refused *NameError
			if !errors.As(err, &refused) || args != nil {
				t.Fatalf("%v with %q", err, args)
			}
			r.Name, r.Namespace, r.Chart = "web", "apps", filepath.Join(t.TempDir(), chart)
			if args, err = r.arguments(); err != nil {
				t.Fatal(err)
			}
		}
		end := slices.Index(args, "--")
		if args[0] != "template" || end != len(args)-3 || args[end+1] != r.Name || args[end+2] != r.Chart {
			t.Fatalf("%q", args)
		}
		if strings.HasPrefix(r.Name, "-") || strings.HasPrefix(r.Chart, "-") || strings.HasPrefix(r.Namespace, "-") {
			t.Errorf("%q", args)
		}
		for _, arg := range args[1:end] {
			flag, _, valued := strings.Cut(arg, "=")
			if valued {
				flag += "="
			}
			if takes, known := flags[flag]; !known || takes != valued {
				t.Errorf("%q is no flag of a call", arg)
			}
		}
	})
}

// Valid and invalid names for Helm and the API server.
func TestNames(t *testing.T) {
	t.Parallel()
	chart := filepath.Join(t.TempDir(), "web.tgz")
	for name, valid := range map[string]bool{
		"web": true, "0": true, "a.b": true, "a-b": true, strings.Repeat("a", 53): true,
		"": false, "-a": false, "a-": false, ".a": false, "a..b": false, "A": false, "a b": false, "a/b": false, strings.Repeat("a", 54): false,
	} {
		if _, err := (&Release{Name: name, Namespace: "apps", Chart: chart}).arguments(); (err == nil) != valid {
			t.Errorf("release %q: %v", name, err)
		}
	}
	for namespace, valid := range map[string]bool{
		"apps": true, "0": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a.b": false, "A": false, strings.Repeat("a", 64): false,
	} {
		if _, err := (&Release{Name: "web", Namespace: namespace, Chart: chart}).arguments(); (err == nil) != valid {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
	if _, err := (&Release{Name: "web", Namespace: "apps", Chart: "web.tgz"}).arguments(); err == nil {
		t.Error("a chart in the working directory, or of a repository, is taken")
	}
}
