package helmtest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

var fixtureNames = []string{"helmchart", "helmchart-v1", "helmchartwithdeps", "helmchartwithdeps-v1"}

// TestPackageAsHelmDoes compares our archives, which have fixed times, with archives that Helm packages.
func TestPackageAsHelmDoes(t *testing.T) {
	charts := []helmtest.Chart{helmtest.NewChart("podinfo", "6.5.0")}
	for _, name := range fixtureNames {
		charts = append(charts, helmtest.Fixture(name))
	}
	for _, c := range charts {
		ours := load(t, pack(t, c))
		file, err := chartutil.Save(ours, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		helms := load(t, b)
		if !reflect.DeepEqual(ours.Metadata, helms.Metadata) {
			t.Errorf("%s: metadata %+v, want %+v", ours.Name(), ours.Metadata, helms.Metadata)
		}
		for _, f := range helms.Raw {
			if f.Name != "Chart.yaml" && f.Name != "Chart.lock" && !bytes.Equal(c[f.Name], f.Data) {
				t.Errorf("%s: %s differs", ours.Name(), f.Name)
			}
		}
		if len(helms.Raw) != len(c) {
			t.Errorf("%s: %d files, want %d", ours.Name(), len(c), len(helms.Raw))
		}
	}
}

func pack(t *testing.T, c helmtest.Chart, extra ...helmtest.Entry) []byte {
	t.Helper()
	b, err := c.Package(extra...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Package(extra...)
	if err != nil || !bytes.Equal(b, again) {
		t.Fatalf("packaged twice, different bytes (%v)", err)
	}
	return b
}

func load(t *testing.T, archive []byte) *chart.Chart {
	t.Helper()
	c, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFixtureLock compares the digest of the lock with that of the requirements, as Helm computes it.
func TestFixtureLock(t *testing.T) {
	c := load(t, pack(t, helmtest.Fixture("helmchartwithdeps")))
	b, err := json.Marshal([2][]*chart.Dependency{c.Metadata.Dependencies, c.Lock.Dependencies})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("sha256:%x", sha256.Sum256(b)); c.Lock.Digest != want {
		t.Errorf("digest %s, want %s", c.Lock.Digest, want)
	}
}

func TestFixtureUnknown(t *testing.T) {
	if c := helmtest.Fixture("nothing"); c != nil {
		t.Errorf("got %v", c)
	}
}

func TestHostileArchives(t *testing.T) {
	dir := unpack(t, `
-- charts --
evil 1.0.0 entry=../../etc/passwd entry=/etc/passwd symlink=evil/link:/etc/passwd hardlink=evil/hard:x device=evil/tty
bomb 1.0.0 fill=bomb/zeros:50000000
noisy 1.0.0 random=noisy/noise:100000
many 1.0.0 entries=5000
other 2.0.0 chart=helmchart@0.1.0 digest=sha256:00 removed
old 1.0.0 apiversion=v1 deprecated
`)
	list, err := helmtest.ReadPublished(dir)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int{}
	for _, p := range list {
		sizes[p.Metadata.Name] = len(p.Archive)
	}
	if sizes["bomb"] > 100_000 || sizes["noisy"] < 100_000 {
		t.Errorf("sizes %v", sizes)
	}
	evil := names(t, list[0].Archive)
	for _, want := range []string{"../../etc/passwd", "/etc/passwd", "evil/link", "evil/hard", "evil/tty", "evil/Chart.yaml"} {
		if !slices.Contains(evil, want) {
			t.Errorf("no entry %s in %v", want, evil)
		}
	}
	if n := len(names(t, list[3].Archive)); n < 5000 {
		t.Errorf("%d entries, want 5000 and more", n)
	}
	other := list[4]
	if load(t, other.Archive).Name() != "helmchart" || other.Metadata.Name != "other" || other.Digest != "sha256:00" || !other.Removed {
		t.Errorf("other: %+v", other.Metadata)
	}
	if old := list[5].Metadata; old.APIVersion != "v1" || !old.Deprecated {
		t.Errorf("old: %+v", old)
	}
}

func names(t *testing.T, archive []byte) []string {
	t.Helper()
	list, err := helmtest.EntryNames(archive)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestHolds(t *testing.T) {
	const secret = "tops3cret/+value"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	zipped := pack(t, helmtest.NewChart("a", "1.0.0").With("x", "a: "+secret))
	for name, text := range map[string]string{
		"clear":    "x" + secret + "y",
		"query":    "u=tops3cret%2F%2Bvalue&",
		"base64 0": b64(secret),
		"base64 1": b64("a" + secret + "tail"),
		"base64 2": b64("ab" + secret),
		"base64 3": b64("abc" + secret + "t"),
		"gzip":     string(zipped),
	} {
		if !helmtest.Holds([]byte(text), secret) {
			t.Errorf("%s: not found in %q", name, text)
		}
	}
	if helmtest.Holds([]byte(strings.Repeat("tops3cre", 20)), secret) {
		t.Error("found where it is not")
	}
}
