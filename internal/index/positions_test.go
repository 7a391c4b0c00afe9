package index_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/helmsrc/helmsrc/internal/index"
)

// TestPositions reads every index of the tests by the positions of its charts, as a later process does: the charts are those
// that a scan finds, in every detail.
func TestPositions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	kept := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scanned, err := index.Scan(bytes.NewReader(data))
		if err != nil || scanned.Check(bytes.NewReader(data)) != nil {
			continue
		}
		p, ok := positions(t, scanned, data)
		if !ok {
			continue
		}
		kept++
		again, ok := p.Offsets(int64(len(data)))
		if !ok {
			t.Errorf("%s: the positions are refused", file)
			continue
		}
		want, got := index.Open(bytes.NewReader(data), scanned), index.Open(bytes.NewReader(data), again)
		if !reflect.DeepEqual(got.Charts(), want.Charts()) {
			t.Errorf("%s: charts %q instead of %q", file, got.Charts(), want.Charts())
		}
		for _, name := range append(want.Charts(), "no such chart") {
			w, wantDropped, wantErr := want.Candidates(name)
			g, dropped, err := got.Candidates(name)
			if !reflect.DeepEqual(g, w) || dropped != wantDropped || !reflect.DeepEqual(err, wantErr) {
				t.Errorf("%s: %s: %v %d %v instead of %v %d %v", file, name, g, dropped, err, w, wantDropped, wantErr)
			}
		}
	}
	if kept < 5 {
		t.Errorf("only %d of %d indexes have positions", kept, len(files))
	}
}

func positions(t *testing.T, o *index.Offsets, data []byte) (*index.Positions, bool) {
	t.Helper()
	made, ok := o.Positions(bytes.NewReader(data))
	if !ok {
		return nil, false
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	p := &index.Positions{}
	if err := json.Unmarshal(text, p); err != nil {
		t.Fatal(err)
	}
	return p, true
}

// TestPositionsOfAnother refuses what does not belong to the bytes.
func TestPositionsOfAnother(t *testing.T) {
	data := []byte("apiVersion: v1\nentries:\n  a:\n  - name: a\n    version: 1.0.0\n    urls: [a.tgz]\n  b:\n  - name: b\n    version: 2.0.0\n    urls: [b.tgz]\n")
	size := int64(len(data))
	scanned, err := index.Scan(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*index.Positions){
		"another version":  func(p *index.Positions) { p.Version++ },
		"another size":     func(p *index.Positions) { p.Size++ },
		"behind the end":   func(p *index.Positions) { p.Charts[1].End = size + 1 },
		"before the start": func(p *index.Positions) { p.Charts[0].Start = -1 },
		"backwards":        func(p *index.Positions) { p.Charts[0].Start, p.Charts[0].End = p.Charts[0].End, p.Charts[0].Start },
		"not in order":     func(p *index.Positions) { p.Charts[0], p.Charts[1] = p.Charts[1], p.Charts[0] },
		"twice":            func(p *index.Positions) { p.Charts[1].Name = "a" },
		"no digest":        func(p *index.Positions) { p.Charts[1].Sum = nil },
		"too many items":   func(p *index.Positions) { p.Charts[1].Items = uint32(size) },
		"all in each": func(p *index.Positions) {
			p.Charts[0].Start, p.Charts[0].End, p.Charts[1].Start, p.Charts[1].End = 0, size, 0, size
		},
	} {
		p, ok := positions(t, scanned, data)
		if !ok {
			t.Fatal("no positions")
		}
		change(p)
		if _, ok := p.Offsets(size); ok {
			t.Errorf("%s: taken", name)
		}
	}
	p, _ := positions(t, scanned, data)
	offsets, ok := p.Offsets(size)
	if !ok {
		t.Fatal("refused")
	}
	altered := bytes.Replace(data, []byte("2.0.0"), []byte("6.6.6"), 1)
	opened := index.Open(bytes.NewReader(altered), offsets)
	if _, _, err := opened.Candidates("b"); !errors.Is(err, index.ErrAltered) {
		t.Errorf("altered lines: %v", err)
	}
	if c, _, err := opened.Candidates("a"); err != nil || len(c) != 1 {
		t.Errorf("the lines beside them: %v %v", c, err)
	}
	if _, _, err := index.Open(bytes.NewReader(data[:40]), offsets).Candidates("b"); !errors.Is(err, index.ErrAltered) {
		t.Errorf("half an index: %v", err)
	}
}
