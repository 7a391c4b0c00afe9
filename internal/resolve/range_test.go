package resolve

import "testing"

func TestSatisfiable(t *testing.T) {
	tests := map[string]bool{
		"":                         true,
		"*":                        true,
		"1.2.3":                    true,
		"=1.2.3":                   true,
		"^1.2.0":                   true,
		"~1.2":                     true,
		"1.x":                      true,
		"1.2.x || 3.x":             true,
		">=1.0.0 <2.0.0":           true,
		">1.0.0, <1.0.2":           true,
		">=1.0.0-0 <1.0.0":         true,
		"1.0 - 2.0":                true,
		"!=1.0.0":                  true,
		">=1.0.0 !=1.0.0":          true,
		">=1.0.0 !=1.0.0 !=1.0.1":  true,
		"^0.0.3":                   true,
		"<1.0.0":                   true,
		">2025.02.03":              true,
		">9223372036854775807.0.0": true,
		"<0.0.1":                   true,
		"latest":                   true, // judged elsewhere
		"^1.0.0 <1.5.0 >1.4.9":     true,
		">2.0.0 <1.0.0":            false,
		">2 <1":                    false,
		"^1.0.0 ^2.0.0":            false,
		"~1.2.0, >=1.3.0":          false,
		"1.2.3 1.2.4":              false,
		"<0.0.0-0":                 false,
		">=1.0.0 <=1.0.0 !=1.0.0":  false,
		">2.0.0 <1.0.0 || >4 <3":   false,
		">2.0.0 <1.0.0 || >=3 <4":  true,
		">=1.5.0 <1.5.0":           false,
		"1.x 2.x":                  false,
	}
	for version, want := range tests {
		if got := Satisfiable(version); got != want {
			t.Errorf("Satisfiable(%q) = %t", version, got)
		}
	}
}

func TestUnbounded(t *testing.T) {
	for version, want := range map[string]bool{
		"": true, "*": true, ">=1.0.0": true, "x": true, "1.x || >=3": true, "!=1.0.0": true,
		"1.2.3": false, "^1.2.0": false, "1.x": false, ">=1 <2": false, "latest": false,
	} {
		if got := Unbounded(version); got != want {
			t.Errorf("Unbounded(%q) = %t", version, got)
		}
	}
}
