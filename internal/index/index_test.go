package index

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// load scans and checks, as one does with an index.
func load(data []byte) (*Index, error) {
	o, err := Scan(bytes.NewReader(data))
	if err == nil {
		err = o.Check(bytes.NewReader(data))
	}
	if err != nil {
		return nil, err
	}
	return Open(bytes.NewReader(data), o), nil
}

func loadFile(t *testing.T, name string) *Index {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	index, err := load(data)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func versionsOf(t *testing.T, index *Index, chart string) (list []string, dropped int) {
	t.Helper()
	c, dropped, err := index.Candidates(chart)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range c {
		list = append(list, c.Version)
	}
	return list, dropped
}

func TestHelmIndex(t *testing.T) {
	const duplicates = "xChartWithDuplicateDependenciesAndMissingAlias"
	t.Run("case 1: all charts are found, also one with duplicate dependencies", func(t *testing.T) {
		index := loadFile(t, "helm.yaml")
		if got, want := index.Charts(), []string{"alpine", "empty", "nginx", duplicates}; !slices.Equal(got, want) {
			t.Errorf("charts %q, want %q", got, want)
		}
		for chart, want := range map[string][]string{"alpine": {"1.0.0"}, "nginx": {"0.2.0", "0.1.0"}, duplicates: {"1.2.3"}, "empty": nil} {
			if got, dropped := versionsOf(t, index, chart); !slices.Equal(got, want) || dropped != 0 {
				t.Errorf("%s: %q and %d dropped, want %q", chart, got, dropped, want)
			}
		}
	})
	t.Run("case 1: not sorted in the file", func(t *testing.T) {
		if got, _ := versionsOf(t, loadFile(t, "unordered.yaml"), "nginx"); !slices.Equal(got, []string{"0.1.0", "0.2.0"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("case 1: ChartMuseum, YAML", func(t *testing.T) {
		if got, _ := versionsOf(t, loadFile(t, "chartmuseum.yaml"), "nginx"); !slices.Equal(got, []string{"0.1.0", "0.2.0"}) {
			t.Errorf("got %q", got)
		}
	})
	t.Run("case 1: ChartMuseum, JSON", func(t *testing.T) {
		index := loadFile(t, "chartmuseum.json")
		if got, want := index.Charts(), []string{"alpine", "nginx", "none", "nothing"}; !slices.Equal(got, want) {
			t.Errorf("charts %q, want %q", got, want)
		}
		if got, dropped := versionsOf(t, index, "nginx"); !slices.Equal(got, []string{"0.2.0"}) || dropped != 4 {
			t.Errorf("got %q and %d dropped", got, dropped)
		}
	})
}

func TestCandidate(t *testing.T) {
	c, _, err := loadFile(t, "helm.yaml").Candidates("nginx")
	if err != nil || len(c) != 2 {
		t.Fatal(c, err)
	}
	first := c[0]
	if first.Name != "nginx" || first.Created.Unix() != 1530093618 || !strings.HasPrefix(first.Digest, "sha256:705e") ||
		!slices.Equal(first.URLs, []string{"nginx-0.2.0.tgz", "https://mirror.example.com/nginx-0.2.0.tgz?a=1&b=2"}) {
		t.Errorf("got %+v", first)
	}
	if first.Removed || first.Deprecated || !c[1].Removed || !c[1].Deprecated {
		t.Errorf("removed and deprecated: %+v", c)
	}
}

func TestInvalidIndex(t *testing.T) {
	const ok = "apiVersion: v1\n"
	tests := []struct{ name, text, want string }{
		{"empty", "", "empty index.yaml file"},
		{"case 3: no apiVersion", "entries: {}\n", "no API version specified"},
		{"case 3: no apiVersion, JSON", `{"entries":{}}`, "no API version specified"},
		{"case 3: an empty apiVersion", "apiVersion: ''\n", "no API version specified"},
		{"case 3: nothing but a comment", "# nothing\n", "no API version specified"},
		{"case 3: null", "null", "no API version specified"},
		{"case 3: no apiVersion, with flow style", "entries:\n  a: [{name: a}]\n", "no API version specified"},
		{"a number for apiVersion", "apiVersion: 1\n", "no API version specified"},
		{"case 4: duplicate chart", ok + "entries:\n  nginx: []\n  alpine: []\n  nginx: []\n", `line 5: key "nginx" already set in map`},
		{"case 4: duplicate chart, quoted", ok + "entries:\n  nginx: []\n  \"nginx\": []\n", `key "nginx" already set in map`},
		{"case 4: duplicate chart, JSON", `{"apiVersion":"v1","entries":{"nginx":[],"n\u0067inx":[]}}`, `key "nginx" already set in map`},
		{"case 4: duplicate chart, flow style", ok + "entries: {nginx: [], nginx: []}\n", `line 2: key "nginx" already set in map`},
		{"case 4: duplicate chart after flow style", ok + "entries:\n  nginx: [{}]\n  nginx: []\n", `line 4: key "nginx" already set in map`},
		{"duplicate top-level key", ok + "entries: {}\nentries: {}\n", `line 3: key "entries" already set in map`},
		{"duplicate key in an entry", ok + "entries:\n  a:\n  - name: a\n    name: b\n", `line 5: key "name" already set in map`},
		{"duplicate key far down", ok + "x:\n- y:\n    z:\n    - a: 1\n      a: 2\n", `line 6: key "a" already set in map`},
		{"duplicate key in a literal entry", ok + "entries:\n  a:\n  - {x: {y: 1, y: 2}}\n", `line 4: key "y" already set in map`},
		{"a second document", ok + "---\nentries: {}\n", "more than one YAML document"},
		{"an empty second document", ok + "---\n", "more than one YAML document"},
		{"garbage after the end", ok + "...\n]garbage\n", "did not find expected"},
		{"JSON and more", `{"apiVersion":"v1"} garbage`, "did not find expected"},
		{"a dedented second half", "  apiVersion: v1\nentries: {}\n", "did not find expected"},
		{"a list", "- a\n", "the index is not a mapping"},
		{"a JSON list", "[1]", "the index is not a mapping"},
		{"a text", "<html></html>", "the index is not a mapping"},
		{"entries are a list", ok + "entries: []\n", "entries is not a mapping"},
		{"entries are a JSON list", `{"apiVersion":"v1","entries":[]}`, "entries is not a mapping"},
		{"a list as a key", ok + "[a]: b\n", "a mapping key is not a scalar"},
		{"merging a scalar", ok + "<<: 1\n", "a merge key needs a mapping or a list of mappings"},
		{"an anchor inside itself", ok + "x: &a\n- [*a]\n", `anchor "a" contains itself`},
		{"an unknown anchor", ok + "x: *a\n", "unknown anchor 'a'"},
		{"a tab", ok + "\tentries: {}\n", "found a tab character that violates indentation"},
		{"a control character", ok + "x: \x01\n", "control characters are not allowed"},
		{"not UTF-8", ok + "x: \xff\n", "invalid leading UTF-8 octet"},
		{"binary", "\x1f\x8b\x08\x00\x00\x00", "control characters are not allowed"},
		{"quote without end", ok + "entries:\n  a:\n  - name: \"a\n", "found unexpected end of stream"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := load([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestValidIndex(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1",
		"apiVersion: v1\nentries:\n",
		"---\napiVersion: v1\n...\n# the end\n",
		`{"apiVersion":"v1","entries":null}`,
		"{apiVersion: v1, unknown: {a: b}}",
		"\xef\xbb\xbfapiVersion: v1\r\nentries: {}\r\n",
		"apiVersion: v1\ngenerated: whenever\nannotations: 7\n",
		"x: &x {apiVersion: v1}\n<<: *x\n",
	} {
		index, err := load([]byte(text))
		if err != nil || len(index.Charts()) != 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWrongTypes(t *testing.T) {
	index := loadFile(t, "wrongtypes.yaml")
	got, dropped := versionsOf(t, index, "web")
	if want := []string{"1.0.0", "1.0.12", "1.0.13"}; !slices.Equal(got, want) || dropped != 18 {
		t.Errorf("got %q and %d dropped, want %q and 18", got, dropped, want)
	}
	c, _, _ := index.Candidates("web")
	if !c[0].Created.IsZero() {
		t.Errorf("created: yesterday is %v", c[0].Created)
	}
	if d := c[1].Digest; d != "unquoted number 1234567890123456789012345678901234567890123456789012345678901234" {
		t.Errorf("numeric digest: %q", d)
	}
	if !c[1].Deprecated || !c[1].Removed {
		t.Errorf("on and yes are not true: %+v", c[1])
	}
	if c[2].Name != "web x" {
		t.Errorf("name %q was not sanitized", c[2].Name)
	}
	if got, dropped := versionsOf(t, index, "list"); got != nil || dropped != 2 {
		t.Errorf("list of texts: %q and %d dropped", got, dropped)
	}
	if got, want := index.Charts(), []string{"list", "tilde", "web"}; !slices.Equal(got, want) {
		t.Errorf("charts %q, want %q", got, want)
	}
}

func TestUnknownChart(t *testing.T) {
	for _, file := range []string{"helm.yaml", "wrongtypes.yaml", "anchors.yaml", "chartmuseum.json"} {
		for _, chart := range []string{"unknown", "scalar", "mapping", "neither"} {
			_, _, err := loadFile(t, file).Candidates(chart)
			if !errors.Is(err, fs.ErrNotExist) || err.Error() != "no chart name found" {
				t.Errorf("%s: %v", chart, err)
			}
		}
	}
}

func TestMergeKeys(t *testing.T) {
	index := loadFile(t, "anchors.yaml")
	c, dropped, err := index.Candidates("web")
	if err != nil || dropped != 0 || len(c) != 3 {
		t.Fatal(c, dropped, err)
	}
	want := []resolve.Candidate{
		{Name: "web", Version: "1.0.0", URLs: []string{"web-1.0.0.tgz"}},
		{Name: "web", Version: "2.0.0", URLs: []string{"web-1.0.0.tgz"}},
		{Name: "web", Version: "3.0.0", URLs: []string{"web-1.0.0.tgz"}, Digest: "abc"},
	}
	for i := range want {
		if c[i].Version != want[i].Version || c[i].Digest != want[i].Digest || !slices.Equal(c[i].URLs, want[i].URLs) {
			t.Errorf("got %+v, want %+v", c[i], want[i])
		}
	}
}

// TestKeysAsWritten shows that a name is what is written, although YAML could read it as a boolean or a number.
func TestKeysAsWritten(t *testing.T) {
	index := loadFile(t, "gitlab.yaml")
	if got, want := index.Charts(), []string{"007", "mychart", "on"}; !slices.Equal(got, want) {
		t.Errorf("charts %q, want %q", got, want)
	}
	if got, dropped := versionsOf(t, index, "on"); len(got) != 1 || dropped != 1 {
		t.Errorf("a name that is a boolean: %q, %d dropped", got, dropped)
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, before := range []string{"", "apiVersion: v1\nentries:\n", `{"apiVersion":"v1",`, "apiVersion: v1\nx: &a\n"} {
		r := io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))
		if _, err := Scan(r); !errors.Is(err, broken) {
			t.Errorf("after %q: %v", before, err)
		}
		if _, err := Scan(io.MultiReader(strings.NewReader(before), stuck{})); !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("no progress after %q: %v", before, err)
		}
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// TestChanged shows what happens when the file is not the one that was scanned.
func TestChanged(t *testing.T) {
	for _, file := range []string{"helm.yaml", "chartmuseum.json", "nexus.yaml"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Scan(bytes.NewReader(data))
		if err == nil {
			err = o.Check(bytes.NewReader(data))
		}
		if err != nil {
			t.Fatal(err)
		}
		other := bytes.NewReader(bytes.Repeat([]byte("*"), len(data)))
		for _, chart := range o.charts {
			if chart.items == 0 {
				continue
			}
			if _, _, err := Open(other, o).Candidates(string(o.name(&chart))); !errors.Is(err, errChanged) {
				t.Errorf("%s, %s: %v", file, o.name(&chart), err)
			}
		}
	}
}

func TestManyReaders(t *testing.T) {
	for _, file := range []string{"helm.yaml", "anchors.yaml", "nexus.yaml"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Scan(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		index := Open(bytes.NewReader(data), o)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for _, chart := range index.Charts() {
					if _, _, err := index.Candidates(chart); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
	}
}
