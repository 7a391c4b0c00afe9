package index

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/repo"

	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

func generated(tb testing.TB, charts, versions int) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := indextest.Generate(&b, charts, versions, "https://charts.example.com"); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// BenchmarkOneChart compares what it takes to get at the versions of one chart of an index of 17 MB.
func BenchmarkOneChart(b *testing.B) {
	data := generated(b, 120, 130)
	file := filepath.Join(b.TempDir(), "index.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		b.Fatal(err)
	}
	chart := indextest.ChartName(60)
	b.Run("helmsrc", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			f, err := os.Open(file)
			if err != nil {
				b.Fatal(err)
			}
			o, err := Scan(f)
			if err != nil {
				b.Fatal(err)
			}
			if c, _, err := Open(f, o).Candidates(chart); err != nil || len(c) != 130 {
				b.Fatal(len(c), err)
			}
			_ = f.Close()
		}
	})
	b.Run("helm", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			i, err := repo.LoadIndexFile(file)
			if err != nil || len(i.Entries[chart]) != 130 {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkScan shows that time is linear in size.
func BenchmarkScan(b *testing.B) {
	for _, entries := range []int{1000, 10000, 50000} {
		data := generated(b, entries/100, 100)
		b.Run(fmt.Sprintf("%dk", entries/1000), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Scan(bytes.NewReader(data)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScanJSON(b *testing.B) {
	file := filepath.Join(b.TempDir(), "index.yaml")
	if err := os.WriteFile(file, generated(b, 20, 100), 0o600); err != nil {
		b.Fatal(err)
	}
	i, err := repo.LoadIndexFile(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := i.WriteJSONFile(file, 0o600); err != nil {
		b.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Scan(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}
