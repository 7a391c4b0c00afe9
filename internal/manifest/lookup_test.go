package manifest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func repository(name string) string {
	return strings.Replace(named(name), "HelmChart", "HelmRepository", 1)
}

func TestSiblings(t *testing.T) {
	files := "-- in/chart.yaml --\n" + named("chart") +
		"-- in/repository.yaml --\n" + repository("podinfo") + "---\n" + secretDoc("token", "stringData: {a: b}") +
		"-- in/broken.yaml --\nx: y: z\n# lost\n" +
		"-- in/one.yaml --\n" + repository("twice") +
		"-- in/two.yaml --\n" + repository("twice") +
		"-- in/ignored.txt --\n" + repository("text") +
		"-- in/deeper/repository.yaml --\n" + repository("deeper") +
		"-- other/chart.yaml --\n" + named("other") +
		"-- other/repository.yaml --\n" + repository("elsewhere") + "  namespace: apps\n"
	write(t, files)
	s, errs := load(t, Options{Files: []string{"in/chart.yaml", "other/chart.yaml"}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	tests := []struct{ name, pos, err, hint string }{
		{"podinfo", "in/repository.yaml:1:1", "", ""},
		{"deeper", "", `helmrepositories.source.toolkit.fluxcd.io "deeper" not found`, "add the file that contains HelmRepository default/deeper with -f"},
		{"text", "", `helmrepositories.source.toolkit.fluxcd.io "text" not found`, "add the file that contains HelmRepository default/text with -f"},
		{"podinf", "", `helmrepositories.source.toolkit.fluxcd.io "podinf" not found`, "did you mean podinfo?"},
		{"elsewhere", "", `helmrepositories.source.toolkit.fluxcd.io "elsewhere" not found`, "there is one in namespace apps, but a reference cannot leave namespace default"},
		{"twice", "", "HelmRepository default/twice is defined 2 times: in/one.yaml:1:1 and in/two.yaml:1:1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := s.Lookup(SourceGroup, "HelmRepository", "default", tt.name)
			if tt.err == "" && (err != nil || o.Pos.String() != tt.pos) {
				t.Errorf("found %v, error %v", o, err)
			}
			if tt.err != "" && fmt.Sprint(err) != tt.err {
				t.Errorf("error %v\n want %s", err, tt.err)
			}
			var missing *NotFoundError
			if errors.As(err, &missing) && missing.Hint() != tt.hint {
				t.Errorf("hint %q, want %q", missing.Hint(), tt.hint)
			}
		})
	}
	if got, want := names(s), "chart other"; got != want {
		t.Errorf("the input has changed: %s, want %s", got, want)
	}
	if secret, err := s.Secret("default", "token"); err != nil || string(secret.Data["a"]) != "b" {
		t.Errorf("Secret %v, error %v", secret, err)
	}
	if got, want := fmt.Sprint(s.Notes()), "[HelmRepository default/podinfo is not in the input: using in/repository.yaml Secret default/token is not in the input: using in/repository.yaml]"; got != want {
		t.Errorf("notes %s\n want %s", got, want)
	}
}

// A missing object is not searched for among all objects each time: the cost of a lookup does not grow with their number.
func TestManyMissing(t *testing.T) {
	work := func(objects int) (lookup, hint float64) {
		var text strings.Builder
		for i := range objects {
			fmt.Fprintf(&text, "%s---\n%s", repository(fmt.Sprintf("other%04d", i)), strings.ReplaceAll(repository(fmt.Sprintf("group%04d", i)), "source.toolkit", "sources.toolkit"))
			text.WriteString("---\n")
		}
		s := NewSet("")
		if err := s.Add("a.yaml", []byte(text.String())); err != nil {
			t.Fatal(err)
		}
		s.unreadable = []brokenFile{{errNoText, []byte(text.String())}}
		var err error
		lookup = testing.AllocsPerRun(10, func() { _, err = s.Lookup(SourceGroup, "HelmRepository", "default", "somewhere") })
		return lookup, testing.AllocsPerRun(10, func() { _ = err.(*NotFoundError).Hint() })
	}
	lookup, hint := work(2000)
	// A collection of garbage between two runs empties pools, which are filled again.
	if moreLookup, moreHint := work(8000); moreLookup > lookup+10 || moreHint > hint+10 {
		t.Errorf("with four times the objects a search allocates %v times, not %v, and its hint %v, not %v", moreLookup, lookup, moreHint, hint)
	}
}

// A file that cannot be read is ignored unless it may contain the missing object.
func TestBrokenSibling(t *testing.T) {
	write(t, "-- chart.yaml --\n"+named("chart")+"-- repository.yaml --\n"+repository("podinfo")+"spec: {\n")
	s, _ := load(t, Options{Files: []string{"chart.yaml"}})
	_, err := s.Lookup(SourceGroup, "HelmRepository", "default", "podinfo")
	var missing *NotFoundError
	if !errors.As(err, &missing) || !strings.HasPrefix(missing.Hint(), "a file that names it cannot be read: repository.yaml:5:") {
		t.Errorf("error %v, hint %v", err, missing)
	}
	_, err = s.Lookup(SourceGroup, "HelmRepository", "default", "other")
	if !errors.As(err, &missing) || strings.Contains(missing.Hint(), "repository.yaml") {
		t.Errorf("error %v, hint %v", err, missing)
	}
}

func TestNoSiblingsOfDirectoriesAndStdin(t *testing.T) {
	write(t, "-- in/a.yaml --\n"+named("a")+"-- repository.yaml --\n"+repository("podinfo"))
	s, _ := load(t, Options{Files: []string{"in", "-"}, Stdin: strings.NewReader(named("b"))})
	if _, err := s.Lookup(SourceGroup, "HelmRepository", "default", "podinfo"); err == nil {
		t.Error("found beside a directory")
	}
}

func TestLookupFromManyGoroutines(t *testing.T) {
	write(t, "-- chart.yaml --\n"+named("chart")+"-- repository.yaml --\n"+repository("podinfo")+"---\n"+secretDoc("s", "stringData: {a: b}"))
	s, _ := load(t, Options{Files: []string{"chart.yaml"}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			o, err := s.Lookup(SourceGroup, "HelmRepository", "default", "podinfo")
			if err != nil || o.Position("metadata", "name").Line != 4 {
				t.Errorf("%v, %v", o, err)
			}
			if _, err := s.Secret("default", "s"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(s.Notes()) != 2 {
		t.Errorf("notes %v", s.Notes())
	}
}

func TestPosition(t *testing.T) {
	text := `# head
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
base: &base
  interval: 1m
  yes: 2
metadata:
  name: x
  labels: {a/b: c, "d": e}
spec:
  <<: *base
  valuesFiles:
  - a.yaml
  -   b.yaml
  text: |
    kind: none
  Ω: é
  list: [1, {x: ü, z: 2}]
`
	s := NewSet("")
	if err := s.Add("f.yaml", []byte("---\n"+text)); err != nil {
		t.Fatal(err)
	}
	o := s.Objects()[0]
	tests := []struct {
		path []any
		want string
	}{
		{nil, "f.yaml:3:1"},
		{[]any{"kind"}, "f.yaml:4:1"},
		{[]any{"metadata", "labels", "a/b"}, "f.yaml:10:12"},
		{[]any{"metadata", "labels", "d"}, "f.yaml:10:20"},
		{[]any{"spec", "valuesFiles", 1}, "f.yaml:15:7"},
		{[]any{"spec", "list", 1, "z"}, "f.yaml:19:20"},
		{[]any{"spec", "interval"}, "f.yaml:6:3"},
		{[]any{"base", "true"}, "f.yaml:7:3"},
		{[]any{"spec", "chart"}, "f.yaml:11:1"},
		{[]any{"spec", "sourceRef", "name"}, "f.yaml:11:1"},
		{[]any{"spec", "valuesFiles", 7, "x"}, "f.yaml:13:3"},
		{[]any{"nope"}, "f.yaml:3:1"},
	}
	for _, tt := range tests {
		if got := o.Position(tt.path...).String(); got != tt.want {
			t.Errorf("%v is at %s, want %s", tt.path, got, tt.want)
		}
	}
	list := "kind: List\napiVersion: v1\nitems:\n- apiVersion: source.toolkit.fluxcd.io/v1\n  kind: Bucket\n  spec:\n    endpoint: x\n"
	json := "{\"kind\": \"List\", \"apiVersion\": \"v1\",\n \"items\": [\n  {\"apiVersion\": \"source.toolkit.fluxcd.io/v1\",\n   \"kind\": \"Bucket\", \"spec\": {\"ü\": [1, 2], \"endpoint\": \"x\"}}]}"
	for text, want := range map[string]string{list: "f.yaml:7:5", json: "f.yaml:4:44", "\n\n  " + json: "f.yaml:6:44"} {
		s := NewSet("")
		if err := s.Add("f.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := s.Objects()[0].Position("spec", "endpoint").String(); got != want {
			t.Errorf("endpoint is at %s, want %s, in %s", got, want, text)
		}
	}
}

func TestUnresolved(t *testing.T) {
	text := chart + "  version: ${VERSION:=1.0.0}\n  valuesFiles: [plain, '$${ESCAPED}', 'a-${B}-${C}', $D]\nstatus: {url: '${NO}'}\n"
	s := NewSet("")
	if err := s.Add("f.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range s.Objects()[0].Unresolved() {
		got = append(got, fmt.Sprint(v.Name, " ", v.Pos))
	}
	want := "[B f.yaml:8:39 C f.yaml:8:39 VERSION f.yaml:7:3]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func TestSurroundings(t *testing.T) {
	inList := func(s string) string {
		return "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") + "\n"
	}
	write(t, "-- apps/a/chart.yaml --\n"+named("chart")+
		"-- apps/a/repository.yaml --\n"+repository("beside")+
		"-- infra/beside.yaml --\n"+repository("beside")+
		"-- infra/deep/er/repository.yaml --\n"+repository("deep")+
		"-- apps/near/repository.yaml --\n"+repository("several")+
		"-- infra/far/off/repository.yaml --\n"+repository("several")+"# another\n"+
		"-- infra/x/same.yaml --\n"+repository("same")+
		"-- infra/y/same.yaml --\n# first\n---\n"+repository("same")+
		"-- infra/x/differs.yaml --\n"+repository("differs")+
		"-- infra/y/differs.yaml --\n"+repository("differs")+"  labels: {a: b}\n"+
		"-- infra/x/listed.yaml --\n"+inList(repository("listed"))+
		"-- infra/y/listed.yaml --\n"+inList(repository("listed"))+
		"-- infra/.hidden/repository.yaml --\n"+repository("hidden")+
		"-- skipped/repository.yaml --\n"+repository("skipped")+
		"-- secrets/s.yaml --\n"+secretDoc("token", "stringData: {a: b}"))
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{".", here} {
		s, errs := load(t, Options{Files: []string{"apps/a/chart.yaml"}, LookupDirs: []string{root}, SkipDirs: []string{"skipped"}})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for _, tt := range []struct{ name, file, err string }{
			{"beside", "apps/a/repository.yaml", ""},
			{"deep", "infra/deep/er/repository.yaml", ""},
			{"several", "apps/near/repository.yaml", ""},
			{"same", "infra/x/same.yaml", ""},
			{"differs", "", "is defined 2 times"},
			{"listed", "", "is defined 2 times"},
			{"hidden", "", "not found"},
			{"skipped", "", "not found"},
		} {
			o, err := s.Lookup(SourceGroup, "HelmRepository", "default", tt.name)
			switch {
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%s from %s: found %v, error %v", tt.name, root, o, err)
			case tt.err == "" && (err != nil || !strings.HasSuffix(filepath.ToSlash(o.Pos.File), tt.file)):
				t.Errorf("%s from %s: found %v, error %v", tt.name, root, o, err)
			}
		}
		if secret, err := s.Secret("default", "token"); err != nil || string(secret.Data["a"]) != "b" {
			t.Errorf("Secret %v, error %v", secret, err)
		}
		if got, want := names(s), "chart"; got != want {
			t.Errorf("the input has changed: %s, want %s", got, want)
		}
	}
}
