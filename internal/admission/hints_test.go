package admission

import (
	"errors"
	"slices"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// TestDurationHint writes the intended duration, if that is known; a text may be anything.
func TestDurationHint(t *testing.T) {
	const general = "a duration has a unit, as in 90s or 10m"
	for text, want := range map[string]string{
		"1d": "a duration has no days: write 24h", "2 days": "a duration has no days: write 48h",
		"10 minutes": "write 10m", "5min": "write 5m", "30 Seconds": "write 30s", "90 s": "write 90s", "2hours": "write 2h",
		"10": general, "": general, "d": general, "1001d": general, "99999999999999999999d": general, "3 months": general, "1 ": general,
		"\u023a": general, "1\u023a": general, "1 \xff": general, // letters that are longer in lower case, and none
	} {
		if got := durationHint(text, false); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := durationHint("1d", true); got != "a timeout has no days: write 1440m" {
		t.Error(got)
	}
}

// TestEmptyKeys reports unknown fields with an empty name at their positions.
func TestEmptyKeys(t *testing.T) {
	for text, want := range map[string]Cause{
		`"": a`:      {Field: "", Path: []any{""}},
		`"": {b: c}`: {Field: "", Path: []any{""}},
		`spec: {interval: 5m, url: "https://a", "": b}`:                   {Field: "spec.", Path: []any{"spec", ""}},
		`spec: {interval: 5m, url: "https://a", secretRef: {"": {b: c}}}`: {Field: "spec.secretRef.", Path: []any{"spec", "secretRef", ""}},
	} {
		_, err := Admit(object(t, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: a}\n"+text+"\n"))
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok {
			t.Fatalf("%s: %v", text, err)
		}
		got := invalid.Causes[0]
		if got.Field != want.Field || !slices.Equal(got.Path, want.Path) || got.Code != finding.UnknownField {
			t.Errorf("%s: %q at %q, %s", text, got.Field, got.Path, got.Code)
		}
	}
}
