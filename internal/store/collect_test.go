package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// §12 case 17: retention.
func TestCollect(t *testing.T) {
	type file struct {
		version string
		age     time.Duration
	}
	for _, tt := range []struct {
		name    string
		ttl     time.Duration
		records int
		files   []file // the last one is the current one
		want    []string
	}{
		{
			name: "case 17: older revisions are removed, the current and the newest kept", ttl: time.Hour, records: 2,
			files: []file{{"1", 4 * time.Minute}, {"2", 3 * time.Minute}, {"3", 2 * time.Minute}, {"4", time.Minute}},
			want:  []string{"3", "4"},
		},
		{
			name: "case 17: too old", ttl: time.Minute, records: 9,
			files: []file{{"1", 2 * time.Hour}, {"2", time.Minute + 1}, {"3", time.Minute}, {"4", 0}},
			want:  []string{"3", "4"},
		},
		{
			name: "the current one is kept, however old", ttl: time.Minute, records: 1,
			files: []file{{"1", 0}, {"2", 0}, {"3", 9 * time.Hour}},
			want:  []string{"3"},
		},
		{
			name: "the same time", ttl: time.Hour, records: 3,
			files: []file{{"1", 0}, {"2", 0}, {"3", 0}, {"4", 0}, {"0", 0}},
			want:  []string{"0", "3", "4"},
		},
		{
			name: "from the future", ttl: time.Minute, records: 2,
			files: []file{{"1", 0}, {"2", -time.Hour}, {"3", 0}},
			want:  []string{"2", "3"},
		},
		{
			name: "nothing to do", ttl: time.Hour, records: 2,
			files: []file{{"1", 0}, {"2", 0}},
			want:  []string{"1", "2"},
		},
		{
			name: "no records at all still keep the current one", ttl: time.Hour, records: 0,
			files: []file{{"1", 0}, {"2", 0}},
			want:  []string{"2"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := testOptions()
			o.RetentionTTL, o.RetentionRecords = tt.ttl, tt.records
			now := theTime
			o.Now = func() time.Time { return now }
			s := openStore(t, t.TempDir(), o)
			defer lock(t, s, chartKey)()
			var current string
			for _, f := range tt.files {
				now = theTime.Truncate(time.Second).Add(-f.age)
				current = put(t, s, chartKey, "x-"+f.version+".tgz", "", f.version).Path
			}
			now = theTime.Truncate(time.Second)
			n, err := s.Collect(chartKey, current)
			if err != nil {
				t.Fatal(err)
			}
			if n != len(tt.files)-len(tt.want) {
				t.Errorf("removed %d", n)
			}
			var want []string
			for _, v := range tt.want {
				want = append(want, "helmchart/apps/podinfo/x-"+v+".tgz")
			}
			wantFiles(t, s.Dir(), want...)
		})
	}
}

func TestCollectLeavesAlone(t *testing.T) {
	o := testOptions()
	o.RetentionTTL, o.RetentionRecords = 0, 1
	s := openStore(t, t.TempDir(), o)
	defer lock(t, s, chartKey)()
	put(t, s, chartKey, "x-1.tgz", "", "1")
	put(t, s, chartKey, "x-2.tgz", LinkLatest, "2")
	put(t, s, chartKey, "x-3.tgz", "", "3")
	unfinished, err := s.Create(chartKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Dir(), "helmchart", "apps", "podinfo")
	old := theTime.Add(-time.Hour)
	for _, name := range []string{"notes.txt", "index.html", "x-1.tgz.lock", "x-0.tgz", "x-1.tgz", "x-2.tgz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("notes.txt", filepath.Join(dir, "x-9.tgz")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "x-8.tgz"), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := s.Collect(chartKey, "x-3.tgz")
	if err != nil || n != 2 {
		t.Errorf("removed %d, %v", n, err)
	}
	if _, err := unfinished.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := unfinished.Commit("x-4.tgz", ""); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "x-8.tgz")); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, "index.html", "latest.tar.gz -> x-2.tgz", "notes.txt", "x-2.tgz", "x-3.tgz", "x-4.tgz",
		"x-9.tgz -> notes.txt")
}
