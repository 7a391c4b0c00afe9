package index

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemory shows that neither a scan nor a chart needs memory for the rest of the index.
func TestMemory(t *testing.T) {
	const most = 2 << 20
	data := generated(t, 100, 100) // 11 MB
	var o *Offsets
	if n := allocated(func() { o, _ = Scan(bytes.NewReader(data)) }); o == nil || n > most {
		t.Errorf("scanning %d bytes took %d of memory", len(data), n)
	}
	n := allocated(func() {
		if c, _, err := Open(bytes.NewReader(data), o).Candidates(indextest.ChartName(7)); err != nil || len(c) != 100 {
			t.Error(len(c), err)
		}
	})
	if n > most {
		t.Errorf("a chart took %d", n)
	}
}

// TestManyCharts shows that what is kept of a chart is small, however many there are.
func TestManyCharts(t *testing.T) {
	const charts, most = 200_000, 90
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n")
	for i := range charts {
		fmt.Fprintf(&b, "  chart-%06d:\n  - name: chart-%06d\n    version: 1.0.0\n", i, i)
	}
	text := b.String()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o, err := Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > charts*most {
		t.Errorf("%d bytes are kept of each of %d charts", kept/charts, charts)
	}
	if c, _, err := Open(strings.NewReader(text), o).Candidates("chart-199999"); err != nil || len(c) != 1 {
		t.Errorf("%v, %v", c, err)
	}
}

// TestManyRegions shows that charts which only the full parser reads are counted.
func TestManyRegions(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n")
	for i := range maxRegions + 1 {
		fmt.Fprintf(&b, "  a%d: [{name: a%d, version: 1.0.0}]\n", i, i)
	}
	text := b.String()
	if o, err := Scan(strings.NewReader(text)); err != nil || o.Check(strings.NewReader(text)) == nil || !strings.Contains(o.Check(strings.NewReader(text)).Error(), "more than 100000 charts") {
		t.Errorf("%v", err)
	}
}

// TestDropped shows that the text of dropped entries does not stay in memory.
func TestDropped(t *testing.T) {
	entry := "  - name: a\n    description: " + strings.Repeat("long ", 100) + "\n"
	data := []byte("apiVersion: v1\nentries:\n  a:\n" + strings.Repeat(entry, 5000))
	index, err := load(data)
	if err != nil {
		t.Fatal(err)
	}
	n := allocated(func() {
		if c, dropped, err := index.Candidates("a"); len(c) != 0 || dropped != 5000 || err != nil {
			t.Error(len(c), dropped, err)
		}
	})
	if n > 6<<20 { // the list is made for as many as there may be
		t.Errorf("took %d of memory", n)
	}
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("long ", maxLine/5+1)
	text := "apiVersion: v1\nentries:\n  a:\n  - name: a\n    version: 1.0.0\n    description: " + long +
		"\n  b:\n  - name: b\n    version: 1.0.0\n"
	o, err := Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	index := Open(strings.NewReader(text), o)
	for _, chart := range []string{"a", "b"} {
		if c, _, err := index.Candidates(chart); err != nil || len(c) != 1 {
			t.Errorf("%s: %v, %v", chart, c, err)
		}
	}
	if o.whole {
		t.Error("the whole file was parsed")
	}
}

func TestTooManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nx:\n")
	for i := range maxKeys + 1 {
		fmt.Fprintf(&b, " %d:\n", i)
	}
	if _, err := Scan(strings.NewReader(b.String())); !errors.Is(err, errTooManyKeys) {
		t.Errorf("got %v", err)
	}
	text := "{\"apiVersion\":\"v1\",\"x\":{" + strings.ReplaceAll(strings.TrimSuffix(b.String()[18:], ":\n"), ":\n", ":0,") + ":0}}"
	text = strings.NewReplacer(" ", "\"", ":0", "\":0").Replace(text)
	if _, err := Scan(strings.NewReader(text)); !errors.Is(err, errTooManyKeys) {
		t.Errorf("JSON: got %v", err)
	}
}

func TestTooManyVersions(t *testing.T) {
	items := strings.Repeat("  -\n", maxVersions+1)
	if _, err := candidatesOf(t, "apiVersion: v1\nentries:\n  a:\n"+items); !errors.Is(err, errTooManyVersions) {
		t.Errorf("got %v", err)
	}
	items = strings.Repeat("  -\n", maxVersions)
	if n, err := candidatesOf(t, "apiVersion: v1\nentries:\n  a:\n"+items); err != nil || n != maxVersions {
		t.Errorf("got %d, %v", n, err)
	}
}

// candidatesOf returns how many entries chart a has.
func candidatesOf(t *testing.T, text string) (int, error) {
	t.Helper()
	index, err := load([]byte(text))
	if err != nil {
		return 0, err
	}
	c, dropped, err := index.Candidates("a")
	return len(c) + dropped, err
}

// TestTooManyMarks shows that the full parser is not given more than it has memory for.
func TestTooManyMarks(t *testing.T) {
	head := strings.NewReader("apiVersion: &a v1\nx: [")
	r := io.MultiReader(head, io.LimitReader(&endless{text: "a,"}, 2*maxParsed+100))
	if _, err := parse(r); !errors.Is(err, errTooManyMarks) {
		t.Errorf("got %v", err)
	}
}

type endless struct {
	text string
	at   int
}

func (r *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at%len(r.text)]
		r.at++
	}
	return len(p), nil
}

func TestAliasBombs(t *testing.T) {
	lists, merges := "x0: &x0 [a, a]\n", "x0: &x0 {name: a}\n"
	for i := range 40 {
		lists += fmt.Sprintf("x%d: &x%d [*x%d, *x%d]\n", i+1, i+1, i, i)
		merges += fmt.Sprintf("x%d: &x%d {<<: [*x%d, *x%d]}\n", i+1, i+1, i, i)
	}
	text := "x: &x {name: a, version: 1.0.0, description: " + strings.Repeat("long ", 2000) + "}\n"
	tests := []struct {
		name, text string
		want       error
	}{
		{"lists", lists + "entries:\n  a:\n  - name: a\n    version: 1.0.0\n    keywords: *x40\n", nil}, // dropped
		{"many lists", lists + "entries:\n  a:\n" + strings.Repeat("  - *x40\n", 100), errAliases},
		{"merges", merges + "entries:\n  a:\n  - *x40\n", errAliases},
		{"merged entries", merges + "entries:\n  <<: *x40\n", errAliases},
		{"text", text + "entries:\n  a:\n" + strings.Repeat("  - *x\n", 20000), errAliases},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if n, err := candidatesOf(t, "apiVersion: v1\n"+test.text); !errors.Is(err, test.want) || err == nil && n != 1 {
				t.Errorf("got %d, %v", n, err)
			}
		})
	}
}

// TestLargeEntry shows that an entry beyond all measure is dropped, however it is written.
func TestLargeEntry(t *testing.T) {
	values := strings.Repeat("    - a\n", maxEntryValues)
	text := strings.Repeat("      "+strings.Repeat("long ", 1000)+"\n", maxEntryText/5000)
	flow := strings.Repeat("a,", maxEntryValues)
	for name, entry := range map[string]string{
		"values": "  - name: a\n    version: 1.0.0\n    keywords:\n" + values,
		"text":   "  - name: a\n    version: 1.0.0\n    description: |\n" + text,
		"flow":   "  - {name: a, version: 1.0.0, keywords: [" + flow + "]}\n",
	} {
		index, err := load([]byte("apiVersion: v1\nentries:\n  a:\n" + entry + "  - name: a\n    version: 1.0.1\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got, dropped := versionsOf(t, index, "a"); len(got) != 1 || dropped != 1 {
			t.Errorf("%s: %q and %d dropped", name, got, dropped)
		}
	}
	index, err := load([]byte(`{"apiVersion":"v1","entries":{"a":[{"name":"` + strings.Repeat("a", maxEntryText+1) + `"},null]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, dropped := versionsOf(t, index, "a"); len(got) != 0 || dropped != 2 {
		t.Errorf("JSON: %q and %d dropped", got, dropped)
	}
}

func TestDepth(t *testing.T) {
	var block strings.Builder
	block.WriteString("apiVersion: v1\n")
	for i := range 2000 {
		block.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	nested := func(n int) string {
		return `{"apiVersion":"v1","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
	}
	tests := []struct {
		name, text string
		ok         bool
	}{
		{"block", block.String(), true},
		{"JSON", nested(maxJSONDepth - 1), true},
		{"deeper JSON", nested(maxJSONDepth), false},
		{"flow", "apiVersion: v1\nx: " + strings.Repeat("[", 1e6), false},
		{"dashes", "apiVersion: v1\nx:\n" + strings.Repeat("- ", 1e6), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := load([]byte(test.text)); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestMarks counts no fewer marks than the full parser makes nodes, whatever the syntax: that bounds its memory.
func TestMarks(t *testing.T) {
	const times = 500
	for _, v := range []struct{ before, item, after string }{
		{"", "a: b\n", ""}, {"", "a:\n", ""}, {"", "a:\r", ""}, {"", "- a\n", ""}, {"", "- a:\n", ""}, {"", "- a: b\n", ""}, {"", "- - - a\n", ""}, {"", "-\n", ""},
		{"", "? a\n", ""}, {"", "? a\n: b\n", ""}, {"", "- ? a\n", ""}, {"", "- !x\n", ""}, {"", "\"a\": b\n", ""}, {"", "- \"a\": b\n", ""}, {"", "\"a\":\n", ""}, {"", "- &x a\n- *x\n", ""},
		{"[", "a,", "]"}, {"[", "[],", "]"}, {"[", "[a],", "]"}, {"[", "{},", "]"}, {"[", "a: b,", "]"}, {"[", "a:,", "]"}, {"[", "a: ,", "]"}, {"[", "? ,", "]"}, {"[", ": ,", "]"},
		{"[", `"a":b,`, "]"}, {"[", `"a":,`, "]"}, {"[", `"a": ,`, "]"}, {"[", "? a,", "]"}, {"[", "!x ,", "]"}, {"[", "&x a,*x ,", "]"}, {"[", "{a},", "]"}, {"[", "{a,b},", "]"},
		{"{", "a,", "}"}, {"{", "a:,", "}"}, {"{", "a: ,", "}"}, {"{", "a: b,", "}"}, {"{", `"a":b,`, "}"}, {"{", `"a":,`, "}"}, {"{", `"a",`, "}"}, {"{", "? a,", "}"}, {"{", "a: [],", "}"}, {"{", `"a":{},`, "}"}, {"{", "? ,", "}"},
	} {
		m := &marksReader{r: strings.NewReader(v.before + strings.Repeat(v.item, times) + v.after)}
		var root yaml.Node
		if err := yaml.NewDecoder(m).Decode(&root); err != nil {
			t.Logf("%q: %v", v.item, err)
			continue
		}
		if nodes := countNodes(&root); nodes > m.count+3 {
			t.Errorf("%s%q: %d nodes of %d marks", v.before, v.item, nodes, m.count)
		}
	}
}

func countNodes(n *yaml.Node) int {
	count := 1
	for _, c := range n.Content {
		count += countNodes(c)
	}
	return count
}
