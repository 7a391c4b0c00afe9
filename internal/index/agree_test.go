package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/repo"
)

func TestOddities(t *testing.T) {
	for i, text := range oddities {
		t.Run(fmt.Sprint(i), func(t *testing.T) { agree(t, []byte(text)) })
	}
}

// TestRecognised shows for which files the full parser is needed, and that it is only for charts that are strange.
func TestRecognised(t *testing.T) {
	strange := map[string][]string{
		"anchors.yaml":    {"web", "api"},
		"flow.yaml":       nil,
		"nexus.yaml":      {"mongodb"},
		"wrongtypes.yaml": {"web"},
	}
	whole := []string{"anchors.yaml", "flow.yaml"}
	for _, file := range testFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Scan(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range o.charts {
			if c.strange {
				got = append(got, string(o.name(&c)))
			}
		}
		name := filepath.Base(file)
		if !slices.Equal(got, strange[name]) {
			t.Errorf("%s: strange are %q, want %q", name, got, strange[name])
		}
		if err := o.Check(bytes.NewReader(data)); err != nil || o.whole != slices.Contains(whole, name) {
			t.Errorf("%s: %v, read by the full parser: %v", name, err, o.whole)
		}
	}
}

// TestHelm holds whole files against Helm's own reader.
func TestHelm(t *testing.T) {
	for _, name := range []string{
		"helm.yaml", "unordered.yaml", "chartmuseum.yaml", "artifactory.yaml", "nexus.yaml", "harbor.yaml", "crlf.yaml",
		"line.json.helm",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name)
			if strings.HasSuffix(name, ".helm") { // as Helm writes JSON
				file = filepath.Join(t.TempDir(), "index.yaml")
				index, err := repo.LoadIndexFile("testdata/helm.yaml")
				if err == nil {
					err = index.WriteJSONFile(file, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			want, err := repo.LoadIndexFile(file)
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := load(data)
			if err != nil {
				t.Fatal(err)
			}
			sameAsHelm(t, got, want)
		})
	}
}

func sameAsHelm(t *testing.T, got *Index, want *repo.IndexFile) {
	t.Helper()
	if len(got.Charts()) != len(want.Entries) {
		t.Errorf("charts %q, Helm has %d", got.Charts(), len(want.Entries))
	}
	for chart, versions := range want.Entries {
		candidates, _, err := got.Candidates(chart)
		if err != nil || len(candidates) != len(versions) {
			t.Fatalf("%s: %d versions, Helm has %d: %v", chart, len(candidates), len(versions), err)
		}
		for _, v := range versions {
			found := false
			for _, c := range candidates {
				digest := c.Digest == v.Digest || strings.HasPrefix(c.Digest, unquotedDigest)
				found = found || c.Name == v.Name && c.Version == v.Version && digest && slices.Equal(c.URLs, v.URLs) &&
					c.Created.Equal(v.Created) && c.Removed == v.Removed && c.Deprecated == v.Deprecated
			}
			if !found {
				t.Errorf("%s: %+v is not among %+v", chart, v, candidates)
			}
		}
	}
}

// TestMutations changes the lines and tokens of indexes at random, which finds more than changing their bytes.
func TestMutations(t *testing.T) {
	m := mutator{rand.New(rand.NewPCG(1, 2))}
	var corpus [][]byte
	for _, text := range oddities {
		corpus = append(corpus, []byte(text))
	}
	for _, file := range testFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		corpus = append(corpus, data)
	}
	for range 2000 {
		data := m.mutate(corpus[m.IntN(len(corpus))])
		if bytes.Count(data, []byte("*")) <= maxFuzzAliases {
			agree(t, data)
		}
	}
}

type mutator struct{ *rand.Rand }

var tokens = []string{
	"\n", "\n  ", "\n    ", "\n- ", "\n  - ", "  ", " ", "- ", ": ", ":", " #", "#", "# c\n", "'", "\"", "|", ">", "|-\n", ">+\n", "[",
	"]", "{", "}", "[]", "{}", ",", "&a ", "*a", "!!str ", "<<: ", "<<: *a", "? ", "~", "null", "1", "1.0.0", "yes", "---\n", "...\n",
	"\n---", "\t", "\r", "\r\n", "\\", "\\n", "\\x41", "\u0085", "\u2028", "é", "\xff", "name: ", "version: ", "a: b\n", "entries:\n",
	"apiVersion: v1\n", "- name: a\n", "  version: 1.0.0\n", "urls:\n", "digest: 1\n", "-", "''", "%", "@", "x", "|2", "a:\n", "\"a\": ",
}

func (m mutator) token() string { return tokens[m.IntN(len(tokens))] }

func (m mutator) mutate(data []byte) []byte {
	for range 1 + m.IntN(4) {
		at := m.IntN(len(data) + 1)
		switch m.IntN(6) {
		case 0, 1:
			data = slices.Concat(data[:at], []byte(m.token()), data[at:])
		case 2:
			data = slices.Concat(data[:at], data[min(len(data), at+1+m.IntN(6)):])
		case 3:
			if k := bytes.Index(data[at:], []byte(": ")); k >= 0 {
				at += k + 2
				data = slices.Concat(data[:at], []byte(m.token()), data[at:])
			}
		default:
			data = bytes.Join(m.lines(bytes.SplitAfter(data, []byte("\n"))), nil)
		}
	}
	return data
}

func (m mutator) lines(lines [][]byte) [][]byte {
	i, j := m.IntN(len(lines)), m.IntN(len(lines))
	line := lines[i]
	switch m.IntN(6) {
	case 0:
		lines[i] = nil
	case 1:
		lines[i] = slices.Concat(line, lines[j])
	case 2:
		lines[i], lines[j] = lines[j], line
	case 3:
		lines[i] = slices.Concat([]byte("    ")[:1+m.IntN(4)], line)
	case 4:
		lines[i] = line[min(len(line), 1+m.IntN(2)):]
	case 5:
		k := indentOf(line)
		lines[i] = slices.Concat(line[:k], []byte(m.token()), line[k:])
	}
	return lines
}
