package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const recordPath = ".helmsrc/v1/helmchart/apps/podinfo.json"

func TestRecord(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	for _, r := range []*Record{
		{},
		{Fingerprint: "f1", Object: []byte(`{"kind":"HelmChart"}`), Status: []byte(`{"observedGeneration":1}`)},
		{Fingerprint: "f2", Object: []byte(`{"a":"<&>\u2028"}`), Status: []byte(`{"conditions":[]}`)},
		{Fingerprint: "f3", Chart: ReleasedChart{"podinfo", "6.5.0", "helmchart/apps/podinfo/podinfo-6.5.0.tgz"}},
	} {
		remember(t, s, chartKey, r)
		got, err := s.Recall(chartKey)
		if err != nil {
			t.Fatal(err)
		}
		if got.FormatVersion != 1 || got.Fingerprint != r.Fingerprint || got.Chart != r.Chart ||
			!bytes.Equal(got.Object, r.Object) || !bytes.Equal(got.Status, r.Status) {
			t.Errorf("remembered %+v, recalled %+v", r, got)
		}
	}
	wantFiles(t, s.Dir(), recordPath)
}

func TestRecordUnchanged(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	stat := func() os.FileInfo {
		fi, err := os.Stat(filepath.Join(s.Dir(), recordPath))
		if err != nil {
			t.Fatal(err)
		}
		return fi
	}
	remember(t, s, chartKey, &Record{Fingerprint: "f"})
	before := stat()
	earlier, err := s.Recall(chartKey)
	if err == nil {
		err = s.Remember(chartKey, &Record{Fingerprint: "f"}, earlier)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, stat()) {
		t.Error("an equal record was written again")
	}
	if err := s.Remember(chartKey, &Record{Fingerprint: "g"}, earlier); err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, stat()) {
		t.Error("the record was changed in place")
	}
}

func TestRecallRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"empty":             "",
		"cut off":           `{"formatVersion":1,"status":{`,
		"no JSON":           "formatVersion: 1\n",
		"no object":         `[1]`,
		"no version":        `{}`,
		"later version":     `{"formatVersion":2,"fingerprint":{"now":"a map"}}`,
		"version of a sort": `{"formatVersion":"1"}`,
		"wrong type":        `{"formatVersion":1,"fingerprint":7}`,
		"two of them":       `{"formatVersion":1}{"formatVersion":1}`,
		"too large":         `{"formatVersion":1,"fingerprint":"` + strings.Repeat("x", maxRecord) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			unlock := lock(t, s, chartKey)
			alter(t, s, recordPath, content)
			unlock()
			_, err := s.Recall(chartKey)
			var recordError *RecordError
			if !errors.As(err, &recordError) || errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), recordPath) {
				t.Errorf("%q does not name the file", err)
			}
			// It can be replaced.
			defer lock(t, s, chartKey)()
			remember(t, s, chartKey, &Record{Fingerprint: "f"})
			if r, err := s.Recall(chartKey); err != nil || r.Fingerprint != "f" {
				t.Errorf("recalled %v, %v", r, err)
			}
		})
	}
}

func TestRecallOfDirectory(t *testing.T) {
	s := newStore(t)
	if err := os.MkdirAll(filepath.Join(s.Dir(), recordPath), 0o700); err != nil {
		t.Fatal(err)
	}
	var recordError *RecordError
	if _, err := s.Recall(chartKey); !errors.As(err, &recordError) {
		t.Errorf("got %v", err)
	}
}

func TestRememberRefuses(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	remember(t, s, chartKey, &Record{Fingerprint: "f"})
	for name, r := range map[string]*Record{
		"no JSON":   {Status: []byte("{")},
		"too large": {Fingerprint: strings.Repeat("x", maxRecord)},
	} {
		if err := s.Remember(chartKey, r, nil); err == nil {
			t.Errorf("%s: is remembered", name)
		}
	}
	if r, err := s.Recall(chartKey); err != nil || r.Fingerprint != "f" {
		t.Errorf("recalled %v, %v", r, err)
	}
}

// The API server takes names of 253 characters; with a suffix they are too long for a file.
func TestLongName(t *testing.T) {
	for _, n := range []int{maxStateName - 1, maxStateName, maxStateName + 1, 253} {
		s := newStore(t)
		key := NewKey("HelmChart", strings.Repeat("n", 63), strings.Repeat("x", n))
		unlock := lock(t, s, key)
		put(t, s, key, "podinfo-1.0.0.tgz", LinkLatest, "x")
		put(t, s, key, "podinfo-1.0.0.tgz", LinkLatest, "y")
		remember(t, s, key, &Record{Fingerprint: "f"})
		unlock()
		if r, err := s.Recall(key); err != nil || r.Fingerprint != "f" {
			t.Errorf("%d characters: recalled %v, %v", n, r, err)
		}
		if keys, err := s.Keys(); err != nil || len(keys) != 1 || keys[0] != key {
			t.Errorf("%d characters: Keys %v, %v", n, keys, err)
		}
		if keys, err := s.Prune(t.Context(), func(Key) bool { return false }); err != nil || len(keys) != 1 || keys[0] != key {
			t.Errorf("%d characters: Prune %v, %v", n, keys, err)
		}
		wantFiles(t, s.Dir())
	}
}

// A reader during the replacement of a record does not restore the old record.
func TestRecallDuringRemember(t *testing.T) {
	s := newStore(t)
	defer lock(t, s, chartKey)()
	remember(t, s, chartKey, &Record{})
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := s.Recall(chartKey); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 100 {
		want := strconv.Itoa(i)
		remember(t, s, chartKey, &Record{Fingerprint: want})
		if r, err := s.Recall(chartKey); err != nil || r.Fingerprint != want {
			t.Errorf("recalled %v, %v, want %s", r, err, want)
		}
	}
	close(done)
	readers.Wait()
}
