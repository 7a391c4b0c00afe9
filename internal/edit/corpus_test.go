package edit

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"
)

// TestCorpus edits random scalars of all manifests that the scripts and examples hold, in several line endings. The text
// before and after the scalar stays byte for byte, and nothing else reads differently.
func TestCorpus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := []string{"1.2.1", "10", "on", "oci://registry.test/org/app", "x y", "it's", "2024-01-02", "v1.0.0-rc.1+b"}
	edited, refusals := 0, 0
	for _, text := range corpus(t) {
		for _, text := range [][]byte{text, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), append([]byte("\ufeff"), text...)} {
			for range 2 {
				f := Parse(text)
				var nodes []*yaml.Node
				var owners []*Document
				for _, d := range f.Documents() {
					for _, n := range scalars(d.Root) {
						nodes, owners = append(nodes, n), append(owners, d)
					}
				}
				if len(nodes) == 0 {
					break
				}
				at := r.IntN(len(nodes))
				value := values[r.IntN(len(values))]
				if nodes[at].Value == value || owners[at].Set(nodes[at], value) != nil {
					continue
				}
				start, end, err := owners[at].span(nodes[at])
				if err != nil {
					t.Fatal(err)
				}
				got, edits, refused := f.Apply()
				if edits == 1 {
					edited++
					before, after := text[:owners[at].offset+start], text[owners[at].offset+end:]
					if !bytes.HasPrefix(got, before) || !bytes.HasSuffix(got, after) {
						t.Fatalf("%q in\n%s\nbecame\n%s", nodes[at].Value, text, got)
					}
					compare(t, f, Parse(got), nodes[at], value)
				}
				refusals += len(refused)
			}
		}
	}
	if edited < 1000 || refusals > edited/100 {
		t.Errorf("%d edited, %d refused: this test tests nothing", edited, refusals)
	}
}

func corpus(t *testing.T) [][]byte {
	t.Helper()
	var texts [][]byte
	scripts, err := filepath.Glob("../../testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scripts {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, ".yaml") && len(file.Data) < 1<<16 {
				texts = append(texts, file.Data)
			}
		}
	}
	examples, err := filepath.Glob("../../examples/*/*.y*ml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}
