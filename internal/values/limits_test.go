package values

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
)

// maxAllocated is the limit of allocations, in bytes, for composing values, however hostile they are.
const maxAllocated = 1 << 30

func lines(size int, line func(i int) string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(line(i))
	}
	return b.String()
}

// TestHostile has references that a cluster would store, and that would take all memory or the whole day if there
// were no limits.
func TestHostile(t *testing.T) {
	const full = 1<<20 - 1<<10
	keys := lines(full, func(i int) string { return fmt.Sprintf("k%x: \n", i) })
	tests := []struct {
		name       string
		data, path string
		literal    bool
		times      int
		want       string // of the error, "" for none
	}{
		{"aliases of long text", "a: &a " + strings.Repeat("x", full/2) + "\nb: [" + strings.Repeat("*a,", full/6) + "]", "", false, 1, "the references have more than 8 MiB of values"},
		{"aliases of aliases", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f]\n", "", false, 1, "excessive aliasing"},
		{"few aliases", "a: &a {x: 1}\nb: *a\n", "", false, 1, ""},
		{"aliases, many times", "a: &a " + strings.Repeat("x", 4<<10) + "\nb: [" + strings.Repeat("*a,", 1<<10) + "]", "", false, 5, "the references have more than 8 MiB of values"},
		{"deep maps", strings.Repeat("{a: ", 9_000) + "1" + strings.Repeat("}", 9_000), "", false, 1, "nested deeper than 200 levels"},
		{"deep lists", "a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), "", false, 1, "nested deeper than 200 levels"},
		{"many deep maps", lines(full/4, func(i int) string {
			return fmt.Sprintf("k%d: ", i) + strings.Repeat("{a: ", 190) + "1" + strings.Repeat("}", 190) + "\n"
		}), "", false, 1, ""},
		{"many keys", keys[:full/4], "", false, 1, ""},
		{"much text, many times", "a: " + strings.Repeat("x", full), "", false, 100, "the references have more than 8 MiB of values"},
		{"an index out of all bounds", "1", "a[999999999]", false, 1, "lists of more than 262144 items"},
		{"an index, literally", "1", "a[999999999]", true, 1, "lists of more than 262144 items"},
		{"the greatest index", "1", "a[65536]", false, 1, ""},
		{"great indexes in each other", "1", "a[65536][65536][65536][65536]", false, 1, "lists of more than 262144 items"},
		{"great indexes, many times", "1", "a[1][65536]", false, 9, "lists of more than 262144 items"},
		{"great indexes in a value", "1" + lines(full, func(i int) string { return fmt.Sprintf(",k%d[65535]=1", i) }), "a", false, 1, "lists of more than 262144 items"},
		{"disguised indexes in a value", "1" + lines(full, func(i int) string { return fmt.Sprintf(`,k%d[\6553\5]=1`, i) }), "a", false, 1, "lists of more than 262144 items"},
		{"signed indexes in a value", "1" + lines(full, func(i int) string { return fmt.Sprintf(`,k%d[+65535]=1`, i) }), "a", false, 1, "lists of more than 262144 items"},
		{"growing lists", "1" + lines(full, func(i int) string { return fmt.Sprintf(",k[%d]=1", i) }), "a", false, 1, "lists of more than 262144 items"},
		{"lists in lists", "1,k" + strings.Repeat("[0]", full/3) + "=1", "a", false, 1, "more than 30 nested lists"},
		{"brackets, literally", strings.Repeat("[65536]", full/7), "a", true, 1, ""},
		{"brackets that are no indexes", strings.Repeat("[a-z]", 1000), "a", false, 1, ""},
		{"braces", strings.Repeat("{", full), "a", false, 1, "list must terminate"},
		{"names in names", "1,x" + strings.Repeat(".a", full/2) + "=b", "a", false, 1, "nested"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var refs []meta.ValuesReference
			for i := range tt.times {
				path := tt.path
				if path != "" && tt.times > 1 {
					path = fmt.Sprintf("p%d.%s", i, path)
				}
				refs = append(refs, meta.ValuesReference{Kind: "ConfigMap", Name: "values", TargetPath: path, Literal: tt.literal})
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			composed, err := compose(t, refs, "", objects{"ConfigMap/values": {"values.yaml": tt.data}})
			if err == nil {
				_, err = Digest(composed)
			}
			runtime.ReadMemStats(&after)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %.300q, want %q", fmt.Sprint(err), tt.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated {
				t.Errorf("allocated %d MiB", n>>20)
			}
		})
	}
}

// TestManyReferences has references merge inline values again and again.
func TestManyReferences(t *testing.T) {
	inline := map[string]any{}
	for i := range 10_000 {
		inline[fmt.Sprint("k", i)] = true
	}
	refs := make([]meta.ValuesReference, 10_000)
	for i := range refs {
		refs[i] = meta.ValuesReference{Kind: "ConfigMap", Name: "values", TargetPath: "a"}
	}
	_, _, err := Trace("mock", refs, inline, objects{"ConfigMap/values": {"values.yaml": "1"}}.lookup, nil)
	if err == nil || !strings.Contains(err.Error(), errTooMuch.Error()) {
		t.Errorf("error %v, want %v", err, errTooMuch)
	}
}
