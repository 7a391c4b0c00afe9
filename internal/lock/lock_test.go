package lock

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	sha1  = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	sha2  = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	sha3  = "sha256:3333333333333333333333333333333333333333333333333333333333333333"
	podin = "HelmRelease/apps/podinfo"
)

func podinfo() Entry {
	return Entry{Object: podin, SourceKind: "HelmRepository", SourceURL: "https://charts.example.com/stable", Chart: "podinfo",
		Constraint: ">=6.0.0 <7.0.0", Version: "6.5.0", URL: "https://charts.example.com/stable/podinfo-6.5.0.tgz", Digest: sha1,
		Dependencies: []Dependency{{Name: "redis", Repository: "https://charts.example.com/stable", Constraint: "18.x", Version: "18.1.0", Digest: sha2}}}
}

func written(t *testing.T, entries ...Entry) []byte {
	t.Helper()
	l := New()
	for _, e := range entries {
		l.Put(e)
	}
	content, err := l.Write()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

const golden = `# helmsrc.lock pins what the manifests resolve to. "helmsrc lock" writes it; commit it, and do not edit it. It ends with "# end".
apiVersion: helmsrc.dev/v1alpha1
kind: Lock
entries:
- object: HelmRelease/apps/podinfo
  sourceKind: HelmRepository
  sourceURL: https://charts.example.com/stable
  chart: podinfo
  constraint: '>=6.0.0 <7.0.0'
  version: 6.5.0
  url: https://charts.example.com/stable/podinfo-6.5.0.tgz
  digest: ` + sha1 + `
  dependencies:
    - name: redis
      repository: https://charts.example.com/stable
      constraint: 18.x
      version: 18.1.0
      digest: ` + sha2 + `
  sum: `

func TestWrite(t *testing.T) {
	content := written(t, podinfo())
	if !strings.HasPrefix(string(content), golden) {
		t.Errorf("wrote\n%s\nwant\n%s", content, golden)
	}
	other := Entry{Object: "HelmChart/apps/nginx", SourceKind: "GitRepository", Revision: "main@sha1:" + strings.Repeat("1", 40), Package: sha3}
	east, west := podinfo(), podinfo()
	east.Cluster, west.Cluster = "clusters/east", "clusters/west"
	one := written(t, podinfo(), other, west, east)
	if two := written(t, east, other, west, podinfo()); !bytes.Equal(one, two) {
		t.Errorf("the order in which entries come changes the file:\n%s\n%s", one, two)
	}
	l, err := Read(one)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Write(); err != nil || !bytes.Equal(one, again) {
		t.Errorf("read and written again (%v):\n%s\nwant\n%s", err, again, one)
	}
	if got := string(written(t)); !strings.HasSuffix(got, "entries: []\n# end\n") {
		t.Errorf("a lock without entries is\n%s", got)
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, change := range map[string]func(*Entry){
		"password": func(e *Entry) { e.URL = "https://ci:canary@charts.example.com/a.tgz" },
		"digest":   func(e *Entry) { e.Digest = "md5:1" },
		"required": func(e *Entry) { e.Dependencies[0].URL = "https://ci:canary@charts.example.com/a.tgz" },
		"object":   func(e *Entry) { e.Object = "podinfo" },
	} {
		l, e := New(), podinfo()
		change(&e)
		l.Put(e)
		if _, err := l.Write(); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	good := string(written(t, podinfo()))
	for name, test := range map[string]struct{ content, want string }{
		"empty":         {"", "the lock file is empty"},
		"newer":         {strings.Replace(good, "v1alpha1", "v2", 1), `the lock file has apiVersion "helmsrc.dev/v2" and kind "Lock", and this version of helmsrc reads helmsrc.dev/v1alpha1 and Lock`},
		"newer field":   {"apiVersion: helmsrc.dev/v2\nkind: Lock\nshards: 2\n", `the lock file has apiVersion "helmsrc.dev/v2" and kind "Lock"`},
		"no lock":       {"apiVersion: v1\nkind: ConfigMap\n", `the lock file has apiVersion "v1" and kind "ConfigMap"`},
		"markers":       {strings.Replace(good, "  version: 6.5.0\n", "<<<<<<< HEAD\n  version: 6.5.0\n=======\n  version: 6.6.0\n>>>>>>> theirs\n", 1), "line 10: the lock file has a conflict marker"},
		"twice":         {strings.TrimSuffix(good, end) + good[strings.Index(good, "- object"):], "line 20: HelmRelease/apps/podinfo has two entries, the first in line 5"},
		"edited":        {strings.Replace(good, "version: 6.5.0", "version: 6.5.1", 1), "line 5: the entry of HelmRelease/apps/podinfo was edited, or merged from two branches"},
		"no sum":        {good[:strings.Index(good, "  sum:")] + end, "line 5: the entry of HelmRelease/apps/podinfo was edited"},
		"algorithm":     {strings.Replace(good, sha1, "md5:abc", 1), "line 5: digest of HelmRelease/apps/podinfo is not a digest in sha256, sha384 or sha512"},
		"password":      {strings.Replace(good, "https://charts", "https://a:canary@charts", 1), "line 5: sourceURL of HelmRelease/apps/podinfo contains a password"},
		"field":         {strings.Replace(good, "  chart: podinfo", "  charts: podinfo", 1), "line 8: the lock file cannot be read: field charts not found"},
		"key twice":     {strings.Replace(good, "  chart: podinfo", "  chart: podinfo\n  chart: podinfo", 1), "line 9: the lock file cannot be read: mapping key \"chart\" already defined"},
		"many keys":     {strings.Replace(good, "  chart: podinfo", strings.Repeat("  chart: podinfo\n", 1001), 1), "line 5: the lock file has too many keys in mappings"},
		"many at first": {strings.Replace(good, "kind: Lock", strings.Repeat("kind: Lock\n", 1001), 1), "line 1: the lock file has too many keys in mappings"},
		"no YAML":       {strings.Replace(good, "entries:", "entries: [", 1), "line 4: the lock file cannot be read"},
		"layout":        {strings.Replace(good, "- object", "  - object", 1), "line 4: the lock file cannot be read"},
		"flow":          {"apiVersion: helmsrc.dev/v1alpha1\nkind: Lock\nentries: [{object: a/b/c}]\n", "the lock file does not have the layout that helmsrc writes"},
		"two documents": {strings.TrimSuffix(good, end) + "---\nkind: Lock\n" + end, "the lock file has more than one document"},
		"cut off":       {strings.TrimSuffix(good, end), `the lock file is truncated: it does not end with "# end"`},
		"own head":      {"# ours\n" + strings.TrimSuffix(good, end), `the lock file is truncated: it does not end with "# end"`},
		"no head":       {strings.TrimSuffix(good[strings.Index(good, "apiVersion"):], end), `the lock file is truncated: it does not end with "# end"`},
		"only a head":   {good[:strings.Index(good, "entries")], "the lock file is truncated"},
		"many values":   {strings.Replace(good, "entries:\n", "entries: ["+strings.Repeat("{},", maxValues)+"]\n", 1), "the lock file has more than 4194304 values"},
		"long entry":    {strings.Replace(good, "podinfo", strings.Repeat("x", maxEntry), 1), "line 5: the lock file has more than 1048576 bytes in an entry"},
		"long head":     {strings.Repeat("#", maxEntry) + "\n" + good, "line 1: the lock file has more than 1048576 bytes in an entry"},
		"aliases":       {strings.Replace(strings.Replace(good, "chart: podinfo", "chart: &a podinfo", 1), "version: 6.5.0", "version: *a", 1), "line 5: the lock file does not have the layout that helmsrc writes"},
		"large":         {good + strings.Repeat("#", MaxBytes), "the lock file is larger than 64 MiB"},
	} {
		_, err := Read([]byte(test.content))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: error %v, want %s", name, err, test.want)
		}
	}
}

func TestReadLineEndings(t *testing.T) {
	content := strings.ReplaceAll(string(written(t, podinfo())), "\n", "\r\n")
	if l, err := Read([]byte(content)); err != nil || len(l.Find(Key{Object: podin})) != 1 {
		t.Errorf("lines that end in CRLF: %v", err)
	}
}

func TestFits(t *testing.T) {
	e := podinfo()
	now := Wanted{SourceKind: "HelmRepository", SourceURL: "https://charts.example.com/stable", Chart: "podinfo", Constraint: ">=6.0.0 <7.0.0"}
	if d := e.Fits(now); len(d) != 0 {
		t.Errorf("differences %v of an object that has not changed", d)
	}
	made := podinfo()
	made.Revision, made.ValuesFiles = "main@sha1:1", []File{{Name: "values.yaml", Digest: sha1}}
	now.ValuesFiles, now.Revision = []string{"values.yaml", "production.yaml"}, "main@sha1:2"
	if got := texts(made.Fits(now)); strings.Join(got, "; ") != `valuesFiles is "values.yaml" in the lock file, and now "values.yaml, production.yaml"; revision is "main@sha1:1" in the lock file, and now "main@sha1:2"` {
		t.Errorf("differences %v of a chart that is packaged", got)
	}
	now.Constraint, now.SourceURL, now.ValuesFiles, now.Revision = "7.x", "", nil, ""
	want := `[sourceURL is "https://charts.example.com/stable" in the lock file, and now empty constraint is ">=6.0.0 <7.0.0" in the lock file, and now "7.x"]`
	if d := e.Fits(now); strings.ReplaceAll(strings.Join(texts(d), " "), "  ", " ") != strings.Trim(want, "[]") {
		t.Errorf("differences %v, want %s", d, want)
	}
}

func texts(all []Difference) []string {
	var s []string
	for _, d := range all {
		s = append(s, d.String())
	}
	return s
}

func TestMoved(t *testing.T) {
	e, now := podinfo(), podinfo()
	now.Signers = []string{"somebody"}
	now.Package = sha3 // only one of the two was packaged
	if d := e.Moved(&now); len(d) != 0 {
		t.Errorf("differences %v of what has not changed", d)
	}
	now.Digest, now.Dependencies = sha3, []Dependency{{Name: "redis", Repository: "https://charts.example.com/stable", Version: "18.1.0", Digest: sha3}}
	var fields []string
	for _, d := range e.Moved(&now) {
		fields = append(fields, d.Field)
	}
	if got := strings.Join(fields, " "); got != "digest dependencies.redis.digest" {
		t.Errorf("moved %q", got)
	}
}

// TestFind searches for the entry of an object if the input is all clusters, and if it is one of them.
func TestFind(t *testing.T) {
	l, east, west := New(), podinfo(), podinfo()
	east.Cluster, west.Cluster = "clusters/east", "clusters/west"
	l.Put(west)
	l.Put(east)
	clusters := func(entries []*Entry) string {
		var names []string
		for _, e := range entries {
			names = append(names, e.Cluster)
		}
		return strings.Join(names, " ")
	}
	if got := clusters(l.Find(Key{Object: podin})); got != "clusters/east clusters/west" {
		t.Errorf("of no cluster: %q", got)
	}
	if got := clusters(l.Find(Key{Cluster: "clusters/west", Object: podin})); got != "clusters/west" {
		t.Errorf("of west: %q", got)
	}
	l.Put(podinfo())
	if got := l.Find(Key{Object: podin}); len(got) != 1 || got[0].Cluster != "" {
		t.Errorf("its own entry does not come first: %v", got)
	}
	l.Drop(func(e *Entry) bool { return e.Cluster == east.Cluster })
	if got := strings.Join(l.Clusters(), " "); got != "clusters/west" {
		t.Errorf("clusters %q", got)
	}
}

func TestDrop(t *testing.T) {
	l, other := New(), podinfo()
	other.Object = "HelmRelease/apps/other"
	l.Put(podinfo())
	l.Put(other)
	l.Drop(func(e *Entry) bool { return e.Object == podin })
	if all := l.Entries(); len(all) != 1 || all[0].Object != other.Object {
		t.Errorf("%d entries left", len(all))
	}
}

// TestReadUnmarked reads locks of versions that did not write a last line.
func TestReadUnmarked(t *testing.T) {
	content := strings.TrimSuffix(strings.Replace(string(written(t, podinfo())), ` It ends with "# end".`, "", 1), end)
	if l, err := Read([]byte(content)); err != nil || len(l.Find(Key{Object: podin})) != 1 {
		t.Errorf("a lock without a last line: %v", err)
	}
}

// TestUnpinned refuses entries that identify no bytes, for each kind of source.
func TestUnpinned(t *testing.T) {
	commit := "main@sha1:" + strings.Repeat("1", 40)
	chart := func(kind, url string) Entry {
		return Entry{Object: "HelmChart/apps/a", SourceKind: kind, SourceURL: url}
	}
	archive, registry, git, bucket := chart("HelmRepository", "https://a.test"), chart("HelmRepository", "oci://a.test"), chart("GitRepository", ""), chart("Bucket", "")
	archive.Digest, registry.ManifestDigest, registry.LayerDigest, git.Revision, bucket.Revision = sha1, sha1, sha2, commit, sha1
	repository, artifact := git, Entry{Object: "OCIRepository/apps/a", SourceKind: "OCIRepository", ManifestDigest: sha1, Revision: "latest@" + sha1}
	repository.Object = "GitRepository/apps/a"
	for name, test := range map[string]struct {
		pinned Entry
		loosen func(*Entry)
	}{
		"archive":             {archive, func(e *Entry) { e.Digest = "" }},
		"archive by manifest": {archive, func(e *Entry) { e.Digest, e.ManifestDigest, e.LayerDigest = "", sha1, sha2 }},
		"registry":            {registry, func(e *Entry) { e.ManifestDigest = "" }},
		"registry by digest":  {registry, func(e *Entry) { e.ManifestDigest, e.Digest = "", sha1 }},
		"layer":               {registry, func(e *Entry) { e.LayerDigest = "" }},
		"chart of Git":        {git, func(e *Entry) { e.Revision = "" }},
		"chart of a branch":   {git, func(e *Entry) { e.Revision = "main" }},
		"short commit":        {git, func(e *Entry) { e.Revision = "main@sha1:1111111" }},
		"Git":                 {repository, func(e *Entry) { e.Revision, e.Digest = "", sha1 }},
		"bucket":              {bucket, func(e *Entry) { e.Revision = "" }},
		"artifact":            {artifact, func(e *Entry) { e.ManifestDigest = "" }},
		"artifact's revision": {artifact, func(e *Entry) { e.Revision = "latest@" + sha2 }},
		"no kind of source":   {archive, func(e *Entry) { e.SourceKind = "" }},
		"dependency":          {archive, func(e *Entry) { e.Dependencies = []Dependency{{Name: "redis", Version: "1.0.0"}} }},
	} {
		if _, err := Read(written(t, test.pinned)); err != nil {
			t.Errorf("%s: an entry that pins: %v", name, err)
		}
		e := test.pinned
		test.loosen(&e)
		if problem := e.problem(); !strings.HasPrefix(problem, "the entry of "+e.Object+" pins nothing: ") {
			t.Errorf("%s: %q", name, problem)
		}
	}
}

// TestMerge: Git merges two branches into a valid lock or reports a conflict, but never combines an entry from both.
func TestMerge(t *testing.T) {
	entry := func(object, version, digest string) Entry {
		e := podinfo()
		e.Object, e.Version, e.Digest = object, version, digest
		return e
	}
	a, b, c := entry("HelmRelease/apps/a", "1.0.0", sha1), entry("HelmRelease/apps/b", "1.0.0", sha1), entry("HelmRelease/apps/c", "1.0.0", sha1)
	base := written(t, a, b, c)
	for name, test := range map[string]struct {
		ours, theirs []byte
		entries      int // 0: the merge ends in a conflict
	}{
		"other entries":       {written(t, entry(a.Object, "2.0.0", sha2), b, c), written(t, a, b, entry(c.Object, "2.0.0", sha2)), 3},
		"one new, one gone":   {written(t, a, b, c, entry("HelmRelease/apps/d", "1.0.0", sha1)), written(t, b, c), 3},
		"fields of one entry": {written(t, a, entry(b.Object, "2.0.0", sha1), c), written(t, a, entry(b.Object, "1.0.0", sha2), c), 0},
		"the same change":     {written(t, a, entry(b.Object, "2.0.0", sha2), c), written(t, a, entry(b.Object, "2.0.0", sha2), c), 3},
	} {
		dir := t.TempDir()
		for file, content := range map[string][]byte{"ours": test.ours, "base": base, "theirs": test.theirs} {
			if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		merge := exec.CommandContext(t.Context(), "git", "merge-file", "--stdout", "ours", "base", "theirs")
		merge.Dir = dir
		merged, failed := merge.Output()
		l, err := Read(merged)
		if test.entries == 0 {
			if failed == nil || err == nil || !strings.Contains(err.Error(), "conflict marker") {
				t.Errorf("%s: merged with %v, read with %v:\n%s", name, failed, err, merged)
			}
			continue
		}
		if failed != nil || err != nil || len(l.Entries()) != test.entries {
			t.Errorf("%s: merged with %v, read with %v:\n%s", name, failed, err, merged)
		}
	}
}

func FuzzRead(f *testing.F) {
	l := New()
	l.Put(podinfo())
	good, err := l.Write()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n")))
	f.Fuzz(func(t *testing.T, content []byte) {
		l, err := Read(content)
		if err != nil {
			return
		}
		once, err := l.Write()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if again, err := Read(once); err != nil || len(again.Entries()) != len(l.Entries()) {
			t.Fatalf("what was written cannot be read: %v\n%s", err, once)
		}
	})
}
