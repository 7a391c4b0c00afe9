package recorded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/helmtest/inputs"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/merge"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

const repository = `apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: apps}
spec: {interval: 5m, url: "https://charts.example.org"}
`

// part is an artifacts directory of a shard, or of a run that was not finished.
func part(t *testing.T, name string, shard *store.Shard) merge.Directory {
	t.Helper()
	st, err := store.Open(t.TempDir(), store.Options{
		Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	if err == nil && shard != nil {
		err = st.WriteShard(t.Context(), *shard)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return merge.Directory{Name: name, Store: st}
}

// TestCompleteParts checks that all parts of one selection, or directories without parts, are complete, and missing parts are named.
func TestCompleteParts(t *testing.T) {
	t.Parallel()
	of := func(index, count int, selection string) *store.Shard {
		return &store.Shard{Index: index, Count: count, Selection: selection}
	}
	for name, test := range map[string]struct {
		shards []*store.Shard
		want   string
	}{
		"all":             {[]*store.Shard{of(1, 2, "a"), of(0, 2, "a")}, ""},
		"no parts":        {[]*store.Shard{nil, nil}, ""},
		"one twice":       {[]*store.Shard{of(0, 2, "a"), of(0, 2, "a")}, "no directory contains shard 1/2"},
		"not finished":    {[]*store.Shard{of(0, 3, "a"), nil}, "no directory contains shard 1/3, 2/3: d1 is from a run that did not finish"},
		"other numbers":   {[]*store.Shard{of(0, 2, "a"), of(1, 3, "a")}, "d0 is shard 0/2, and d1 is shard 1/3"},
		"other manifests": {[]*store.Shard{of(0, 2, "a"), of(1, 2, "b")}, "d0 and d1 are shards of other selections: the manifests or the arguments differ"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var from []merge.Directory
			for i, s := range test.shards {
				from = append(from, part(t, "d"+string(rune('0'+i)), s))
			}
			err := completeParts(from)
			if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			var usage *exit.UsageError
			if err != nil && !errors.As(err, &usage) {
				t.Errorf("%T is no wrong usage", err)
			}
		})
	}
}

// TestJoinRefuses checks the errors for directories that cannot be joined.
func TestJoinRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "file")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "to")
	for _, test := range []struct {
		dirs []string
		want string
	}{
		{nil, "no directories to join"},
		{[]string{filepath.Join(dir, "missing")}, "no such directory"},
		{[]string{plain}, "is not a directory"},
		{[]string{dir}, "is not an artifacts directory"},
	} {
		w, _ := inputs.Worker()
		code, err := Join(t.Context(), w, &session.StoreOptions{Dir: to, Records: 2}, test.dirs, 1)
		if err == nil || code != exit.Usage || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: code %d, error %v, want %s", test.dirs, code, err, test.want)
		}
	}
}

// TestJoinParts joins all parts of a selection, and refuses a part of one.
func TestJoinParts(t *testing.T) {
	t.Parallel()
	var dirs []string
	for i := range 2 {
		dir := t.TempDir()
		st, err := store.Open(dir, store.Options{
			Kinds: reconcile.Kinds().Names(), Shared: reconcile.Kinds().WithoutArtifact(), Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(st.WriteShard(t.Context(), store.Shard{Index: i, Count: 2, Selection: "a"}), st.Close()); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	w, printed := inputs.Worker()
	code, err := Join(t.Context(), w, &session.StoreOptions{Dir: t.TempDir(), Records: 2}, dirs, 1)
	if err != nil || code != exit.OK || !strings.Contains(printed.String(), "2 directories: 0 objects joined, 0 were there, 0 left out") {
		t.Errorf("code %d, error %v\n%s", code, err, printed)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(exit.ErrInterrupted)
	if code, err := Join(ended, w, &session.StoreOptions{Dir: t.TempDir(), Records: 2}, dirs, 1); !errors.Is(err, exit.ErrInterrupted) || code != exit.Interrupted {
		t.Errorf("ended: code %d, error %v", code, err)
	}
	code, err = Join(t.Context(), w, &session.StoreOptions{Dir: t.TempDir(), Records: 2}, dirs[:1], 1)
	if err == nil || code != exit.Usage || err.Error() != "no directory contains shard 1/2" {
		t.Errorf("one part: code %d, error %v", code, err)
	}
	code, err = Join(t.Context(), w, &session.StoreOptions{Dir: t.TempDir(), Records: 2}, []string{dirs[0], dirs[0]}, 1)
	if err == nil || code != exit.Usage || !strings.HasSuffix(err.Error(), "is named twice") {
		t.Errorf("twice: code %d, error %v", code, err)
	}
}

// TestOfInputs checks that objects that were never fetched are reported and fail.
func TestOfInputs(t *testing.T) {
	t.Parallel()
	w, printed := inputs.Worker()
	in := inputs.Read(t, w, load.Options{}, map[string]string{"all.yaml": repository})
	d, err := Open(w, &session.StoreOptions{Dir: t.TempDir(), Records: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := d.OfInputs(in)
	if err != nil || len(s.Missing) != 1 || len(s.Results) != 0 || s.Code != exit.Failed {
		t.Fatalf("%+v, %v", s, err)
	}
	if !strings.Contains(printed.String(), "nothing is recorded for it") {
		t.Errorf("printed %s", printed)
	}
	objects, err := s.Objects()
	if err != nil || len(objects) != 1 || objects[0].State != report.StateFailed || objects[0].Name != "charts" {
		t.Errorf("objects %v, %v", objects, err)
	}
}

// TestSelect checks that a directory without records is an error, unless that is allowed.
func TestSelect(t *testing.T) {
	t.Parallel()
	w, _ := inputs.Worker()
	d, err := Open(w, &session.StoreOptions{Dir: t.TempDir(), Records: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var usage *exit.UsageError
	if _, err := d.Select(&load.Options{}, nil); !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "nothing is recorded in ") {
		t.Errorf("error %v", err)
	}
	if s, err := d.Select(&load.Options{AllowEmpty: true}, nil); err != nil || len(s.Results) != 0 {
		t.Errorf("%v, %v", s, err)
	}
	selector := load.Selector{Kind: "HelmChart", Name: "podinfo"}
	if _, err := d.Select(&load.Options{AllowEmpty: true}, []load.Selector{selector}); !errors.As(err, &usage) {
		t.Errorf("error %v", err)
	}
}

// TestPruneRefuses checks that an incomplete input removes no object: objects missing from it may still be in use.
func TestPruneRefuses(t *testing.T) {
	t.Parallel()
	w, _ := inputs.Worker()
	in := inputs.Read(t, w, load.Options{}, map[string]string{"all.yaml": repository})
	o := &session.StoreOptions{Dir: t.TempDir(), Records: 2}
	if code, err := Prune(t.Context(), w, o, in, false); err != nil || code != exit.OK {
		t.Errorf("code %d, error %v", code, err)
	}
	in[0].Selectors = []load.Selector{{Kind: "HelmChart", Name: "missing"}}
	if code, err := Prune(t.Context(), w, o, in, false); err == nil || code != exit.Usage {
		t.Errorf("nothing is selected: code %d, error %v", code, err)
	}
	in[0].Selectors = nil
	in[0].Code = exit.Usage
	if code, err := Prune(t.Context(), w, o, in, false); err == nil || code != exit.Usage {
		t.Errorf("unreadable: code %d, error %v", code, err)
	}
	in[0].Code, in[0].Rendered.Incomplete = exit.OK, true
	if code, err := Prune(t.Context(), w, o, in, false); err == nil || code != exit.Usage {
		t.Errorf("incomplete: code %d, error %v", code, err)
	}
}

// TestKeysOf checks that the files of a rejected object stay, and those of the chart of a release.
func TestKeysOf(t *testing.T) {
	t.Parallel()
	w, _ := inputs.Worker()
	const chart = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: NAME, namespace: apps}
spec: {interval: INTERVAL, chart: podinfo, sourceRef: {kind: HelmRepository, name: elsewhere}}
`
	for interval, want := range map[string]int{"5m": 3, "never": 2} {
		in := inputs.Read(t, w, load.Options{}, map[string]string{"all.yaml": repository + strings.NewReplacer("NAME", "podinfo", "INTERVAL", interval).Replace(chart)})
		keys := keysOf(in[0])
		if len(keys) != want || !keys[store.NewKey("HelmChart", "apps", "podinfo")] || keys[store.NewKey("HelmRepository", "apps", "elsewhere")] != (want == 3) {
			t.Errorf("%s: %v", interval, keys)
		}
	}
}
