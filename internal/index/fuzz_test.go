package index

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// FuzzScan holds the streaming reader against the reference: on every input, both fail or both find the same charts,
// candidates and dropped entries, whatever the size of the window.
func FuzzScan(f *testing.F) {
	for _, file := range testFiles(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range oddities {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 || bytes.Count(data, []byte("*")) > maxFuzzAliases {
			return
		}
		agree(t, data)
	})
}

// maxFuzzAliases keeps the reference, which knows no limits, from being bombed.
const maxFuzzAliases = 12

func testFiles(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no test data: %v", err)
	}
	return files
}

func agree(t *testing.T, data []byte) {
	t.Helper()
	want, wantErr := reference(data)
	for _, size := range []int64{maxLine, 40, 16} {
		w := newWindow(bytes.NewReader(data), size)
		o, err := scanIndex(w)
		if err == nil {
			err = o.Check(bytes.NewReader(data))
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("window %d: error %v, reference says %v\n%q", size, err, wantErr, data)
		}
		if err == nil {
			same(t, Open(bytes.NewReader(data), o), want, data)
		}
	}
}

func same(t *testing.T, index *Index, want map[string]versions, data []byte) {
	t.Helper()
	var names []string
	for name, v := range want {
		if v.known {
			names = append(names, name)
		}
		c, dropped, err := index.Candidates(name)
		if known := !errors.Is(err, fs.ErrNotExist); known && err != nil || known != v.known {
			t.Fatalf("chart %q: error %v, known: %v\n%q", name, err, v.known, data)
		}
		if err != nil {
			continue
		}
		if len(c) != len(v.candidates) || len(c) > 0 && !reflect.DeepEqual(c, v.candidates) || dropped != v.dropped {
			t.Fatalf("chart %q:\n%+v, %d dropped, reference says\n%+v, %d dropped\n%q", name, c, dropped, v.candidates, v.dropped, data)
		}
	}
	slices.Sort(names)
	if got := index.Charts(); !slices.Equal(got, names) {
		t.Fatalf("charts %q, reference says %q\n%q", got, names, data)
	}
}
