package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	source := []byte(`package p

import "errors"

const most = 3 + 4

func f(n int, s string) error {
	if n > most && s != "" {
		g()
		n++
		return errors.New("a" + s)
	}
	for n < 3 {
		n += 2
		continue
	}
	return nil
}
`)
	changes, err := changesOf(source)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.what+": "+string(source[c.from:c.to])+" → "+c.with)
		if after, err := changesOf(c.apply(source)); err != nil || after == nil {
			t.Errorf("%s: what comes of it cannot be parsed: %v", got[len(got)-1], err)
		}
	}
	want := []string{
		`negated condition: n > most && s != "" → !(n > most && s != "")`,
		"other operator: && → ||", "other operator: > → >=", "other operator: != → ==",
		"dropped call: g() → {}", "dropped statement: n++ → {}",
		`no error: errors.New("a" + s) → nil`,
		"other operator: < → <=", "dropped assignment: n += 2 → {}", "dropped branch: continue → {}",
	}
	slices.Sort(got)
	slices.Sort(want)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRun: in a module with one function that is tested and one that is not, the changes of the latter survive.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26.0\n",
		"m.go":      "package m\n\nfunc tested(n int) bool { return n == 1 }\n\nfunc untested(n int) bool { return n == 2 }\n\nvar _ = untested\n",
		"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {\n\tif !tested(1) || tested(2) {\n\t\tt.Fail()\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options{dir: dir, packages: []string{"."}, n: 10, seed: 1, timeout: time.Minute}
	var out bytes.Buffer
	survivors, err := o.run(t.Context(), &out)
	if err != nil || survivors != 1 {
		t.Fatalf("%d survivors, %v\n%s", survivors, err, out.String())
	}
	want := "survived: example.com/m/m.go:5: other operator: == → !=\n1 of 2 changes were noticed, 1 survived; there are 2 places, seed 1\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	o.at = "m.go:3"
	if survivors, err := o.run(t.Context(), &out); err != nil || survivors != 0 {
		t.Errorf("-at: %d survivors, %v", survivors, err)
	}
	o.at, o.functions = "", "m[.]un.*"
	if survivors, err := o.run(t.Context(), &out); err != nil || survivors != 1 || !strings.Contains(out.String(), "\n0 of 1 changes") {
		t.Errorf("-func: %d survivors, %v\n%s", survivors, err, out.String())
	}
}
