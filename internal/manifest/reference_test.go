package manifest

import "testing"

func TestSplitReference(t *testing.T) {
	for reference, want := range map[string][3]string{
		"":                                   {"", "", ""},
		"redis":                              {"redis", "", ""},
		"redis:7":                            {"redis", "7", ""},
		"registry.example:5000/a/b":          {"registry.example:5000/a/b", "", ""},
		"registry.example:5000/a:1@sha256:0": {"registry.example:5000/a", "1", "sha256:0"},
		"oci://registry.example/a@sha256:0":  {"oci://registry.example/a", "", "sha256:0"},
	} {
		repository, tag, digest := SplitReference(reference)
		if got := [3]string{repository, tag, digest}; got != want {
			t.Errorf("%s is split into %q", reference, got)
		}
	}
}
