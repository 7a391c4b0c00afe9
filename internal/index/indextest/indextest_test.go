package indextest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/repo"
)

func TestGenerate(t *testing.T) {
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := Generate(b, 3, 60, "https://charts.example.com"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two runs differ")
	}
	if n := first.Len() / 180; n < 1000 || n > 1300 {
		t.Errorf("an entry has %d bytes", n)
	}
	file := filepath.Join(t.TempDir(), "index.yaml")
	if err := os.WriteFile(file, first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	index, err := repo.LoadIndexFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		versions := index.Entries[ChartName(i)]
		if len(versions) != 60 || versions[0].Version != Version(59) {
			t.Errorf("%s has %d versions, latest %s", ChartName(i), len(versions), versions[0].Version)
		}
	}
}
