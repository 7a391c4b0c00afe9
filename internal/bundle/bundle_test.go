package bundle_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/bundle"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/store"
)

func carried(t *testing.T) *cache.Cache {
	t.Helper()
	c, err := cache.Open(t.TempDir(), cache.Options{Carried: true, MaxSize: math.MaxInt64, Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// charts returns an empty set of charts in a directory of the scratch.
func charts(t *testing.T, scratch *store.Scratch) *bundle.Charts {
	t.Helper()
	c, err := bundle.NewCharts(scratch, chart.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const archive = "the bytes of a chart"

// written returns the bytes of a bundle with one chart.
func written(t *testing.T) []byte {
	t.Helper()
	c := carried(t)
	s := c.Scope([]string{"https://charts.test"}, []string{"a login"}, "https://charts.test")
	c.Keep(s, godigest.FromString(archive), int64(len(archive)), strings.NewReader(archive))
	c.KeepAnswer(s, "tag", "6.5.0", "", "an answer")
	name := filepath.Join(t.TempDir(), "charts.tar")
	var beside store.Scratch
	beside.Parent = filepath.Dir(name)
	if _, err := charts(t, &beside).Write(t.Context(), name, false, []byte("a lock"), c, bundle.Base{}); err != nil {
		t.Fatal(err)
	}
	if err := beside.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the bundle: %v, %v", left, err)
	}
	return text
}

func read(t *testing.T, text []byte) ([]byte, *cache.Cache, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "charts.tar")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := carried(t)
	lock, err := bundle.Read(t.Context(), []string{name}, c)
	return lock, c, err
}

func TestBundle(t *testing.T) {
	t.Parallel()
	text := written(t)
	if !bytes.Equal(text, written(t)) {
		t.Error("two bundles of the same differ")
	}
	lock, c, err := read(t, text)
	if err != nil || string(lock) != "a lock" {
		t.Fatalf("lock %q, %v", lock, err)
	}
	s := c.Scope([]string{"https://charts.test", "another way"}, nil, "")
	var got bytes.Buffer
	if !c.Load(s, godigest.FromString(archive), 1000, &got) || got.String() != archive {
		t.Errorf("chart: %q", &got)
	}
	var answer string
	if _, ok := c.Answer(s, "tag", "6.5.0", &answer); !ok || answer != "an answer" {
		t.Errorf("answer: %q", answer)
	}
	if elsewhere := c.Scope([]string{"https://other.test"}, nil, ""); c.Load(elsewhere, godigest.FromString(archive), 1000, &got) {
		t.Error("the chart is served for another source")
	}
}

// A bundle that is cut off anywhere before its end is refused.
func TestReadTruncated(t *testing.T) {
	t.Parallel()
	text := written(t)
	end := len(bytes.TrimRight(text, "\x00"))
	for n := 0; n < end; n += 256 {
		if _, _, err := read(t, text[:n]); err == nil {
			t.Errorf("cut off after %d of %d bytes: no error", n, end)
		}
	}
}

func TestReadAltered(t *testing.T) {
	t.Parallel()
	_, _, err := read(t, bytes.ReplaceAll(written(t), []byte(archive), []byte("the bytes of a CHART")))
	var altered interface{ Integrity() bool }
	if !errors.As(err, &altered) || !altered.Integrity() {
		t.Errorf("error %v", err)
	}
}

// layout is an archive of entries, in order.
func layout(t *testing.T, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: entries[i], Size: int64(len(entries[i+1])), Mode: 0o644})
		if err == nil {
			_, err = io.WriteString(w, entries[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	foreign := `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + strings.Repeat("0", 64) + `","size":2}]}`
	ours := strings.Replace(foreign, `"size"`, `"artifactType":"application/vnd.helmsrc.bundle.v1","size"`, 1)
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"text":             {[]byte("no archive"), "not a bundle"},
		"another tool":     {layout(t, "oci-layout", "{}", "index.json", foreign), "not a bundle"},
		"no manifest":      {layout(t, "oci-layout", "{}", "index.json", ours), "is missing"},
		"above":            {layout(t, "../index.json", ours), "not the name"},
		"absolute":         {layout(t, "/index.json", ours), "not the name"},
		"name of a digest": {layout(t, "index.json", strings.Replace(ours, "sha256:0", "sha256:../../0", 1)), "malformed"},
		"no JSON":          {layout(t, "index.json", "{"), "cannot be read"},
		"a long index":     {layout(t, "index.json", strings.Repeat(" ", 17<<20)), "more than"},
	} {
		_, _, err := read(t, test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// A manifest of a gigabyte is refused by its size, before it is read.
func TestReadLargeManifest(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	digest := "sha256:" + strings.Repeat("0", 64)
	index := `{"manifests":[{"artifactType":"application/vnd.helmsrc.bundle.v1","digest":"` + digest + `","size":1}]}`
	f, err := os.Create(filepath.Join(t.TempDir(), "charts.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for _, h := range []tar.Header{{Name: "index.json", Size: int64(len(index))}, {Name: "blobs/sha256/" + digest[7:], Size: size}} {
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size != size {
			if _, err := io.WriteString(w, index); err != nil {
				t.Fatal(err)
			}
		}
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err == nil {
		err = f.Truncate(at + size + 1024)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Read(t.Context(), []string{f.Name()}, carried(t)); err == nil || !strings.Contains(err.Error(), "1073741824 bytes, more than the limit") {
		t.Errorf("error %v", err)
	}
}

// A bundle of what is new needs the one that it stands on, and says so.
func TestReadSince(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second, damaged := filepath.Join(dir, "first.tar"), filepath.Join(dir, "second.tar"), filepath.Join(dir, "damaged.tar")
	text := written(t)
	if err := errors.Join(os.WriteFile(first, text, 0o600), os.WriteFile(damaged, text[:len(text)/2], 0o600)); err != nil {
		t.Fatal(err)
	}
	base, err := bundle.ReadBase(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	c := carried(t)
	s := c.Scope([]string{"https://charts.test"}, []string{"a login"}, "https://charts.test")
	for _, content := range []string{archive, "another chart"} {
		c.Keep(s, godigest.FromString(content), int64(len(content)), strings.NewReader(content))
	}
	if _, err := charts(t, &store.Scratch{Parent: t.TempDir()}).Write(t.Context(), second, false, []byte("a new lock"), c, base); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ names, err string }{
		{"second.tar first.tar", ""},
		{"second.tar", "only the content that is new since the bundle"},
		{"second.tar damaged.tar", "damaged.tar: "},
		{"second.tar missing.tar", "missing.tar: no such file"},
		{"missing.tar", "missing.tar: no such file"},
	} {
		var names []string
		for name := range strings.FieldsSeq(tt.names) {
			names = append(names, filepath.Join(dir, name))
		}
		lock, err := bundle.Read(t.Context(), names, carried(t))
		if tt.err == "" && (err != nil || string(lock) != "a new lock") || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %q, %v", tt.names, lock, err)
		}
	}
}

// An archive of very many entries is given up.
func TestReadManyEntries(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "blobs/", Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "charts.tar")
	if err := os.WriteFile(name, bytes.Repeat(b.Bytes(), 200_001), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bundle.Read(t.Context(), []string{name}, carried(t)); err == nil || !strings.Contains(err.Error(), "more than 200000 entries") {
		t.Errorf("error %v", err)
	}
}

// A disk or a directory that takes nothing leaves the file that was there.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "missing", "charts.tar")
	if _, err := charts(t, &store.Scratch{Parent: t.TempDir()}).Write(t.Context(), name, false, nil, carried(t), bundle.Base{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
