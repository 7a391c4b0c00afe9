package admission

import "testing"

// TestDurationHint writes what is meant, if that is known; a text may be anything.
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
