package finding

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRules checks the form of the catalogue: codes and names are unique, texts are sentences.
func TestRules(t *testing.T) {
	codes, names := map[Code]bool{}, map[string]bool{}
	form, nameForm := regexp.MustCompile(`^HS[0-9]{3}$`), regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range Rules() {
		if !form.MatchString(string(r.Code)) || codes[r.Code] {
			t.Errorf("code %s is malformed or there twice", r.Code)
		}
		if !nameForm.MatchString(r.Name) || names[r.Name] {
			t.Errorf("%s: name %q is malformed or there twice", r.Code, r.Name)
		}
		codes[r.Code], names[r.Name] = true, true
		if r.Summary == "" || strings.HasSuffix(r.Summary, ".") {
			t.Errorf("%s: summary %q", r.Code, r.Summary)
		}
		for _, text := range []string{r.Explanation, r.Fix} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: no sentence: %q", r.Code, text)
			}
		}
		if !slices.Contains([]Severity{Error, Warning, Note}, r.Severity) || !slices.Contains(groups(), r.Group) {
			t.Errorf("%s: severity %q, group %q", r.Code, r.Severity, r.Group)
		}
		if (r.Example == "") != (r.Better == "") {
			t.Errorf("%s: an example and its correction go together", r.Code)
		}
	}
}

// TestFixes reports hints that only refer to the message that they belong to.
func TestFixes(t *testing.T) {
	circular := regexp.MustCompile(`(?i)\bthe hint\b|^(see|do what|do as|follow|read|fix what|correct what) the message|as the message says`)
	for _, r := range Rules() {
		if found := circular.FindString(r.Fix); found != "" {
			t.Errorf("%s: %q is no action of its own: %s", r.Code, found, r.Fix)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, r := range Rules() {
		if got, ok := Lookup(string(r.Code)); !ok || got.Name != r.Name {
			t.Errorf("Lookup(%s) = %v, %t", r.Code, got.Name, ok)
		}
	}
	if _, ok := Lookup("HS000"); ok {
		t.Error("HS000 was found")
	}
}

func TestNearest(t *testing.T) {
	known := []string{"chart", "version", "sourceRef", "interval", "valuesFiles"}
	for name, want := range map[string]string{
		"chrat": "chart", "Chart": "chart", "valuesFile": "valuesFiles", "sourceref": "sourceRef", "intervall": "interval",
		"source_ref": "sourceRef", "x": "", "completelyDifferent": "", "": "", strings.Repeat("chart", 1000): "",
	} {
		if got, _ := Nearest(name, known); got != want {
			t.Errorf("nearest to %.20s is %q, want %q", name, got, want)
		}
	}
}

// TestNearestOfMany: the work of a search is bounded for any number of names.
func TestNearestOfMany(t *testing.T) {
	var known []string
	for i := range 20_000 {
		known = append(known, fmt.Sprintf("chart-%06d", i))
	}
	of := func(n int) float64 { return testing.AllocsPerRun(5, func() { Nearest("other-name-xx", known[:n]) }) }
	if some, all := of(5000), of(20_000); all > some {
		t.Errorf("a search among four times the names allocates %v times, not %v", all, some)
	}
	if near, _ := Nearest("chart-00x123", known); near != "chart-000123" {
		t.Errorf("nearest is %q", near)
	}
}
