package finding

import "testing"

// TestSilencesCycle: a comment at a member of a cycle silences only the findings of its members.
func TestSilencesCycle(t *testing.T) {
	const text = "dependsOn forms a cycle: a/x → a/y → a/x"
	first := Finding{Code: DependencyCycle, Kind: "HelmRelease", Namespace: "a", Name: "x", Message: text, Pos: Pos{File: "x.yaml", Line: 3}}
	second := Finding{Code: DependencyCycle, Kind: "HelmRelease", Namespace: "a", Name: "y", Message: text, Pos: Pos{File: "y.yaml", Line: 3}}
	effect := first
	effect.BlockedBy = second.Object()
	other := Finding{Code: MissingSource, Kind: "HelmRelease", Namespace: "a", Name: "z", Message: "gone", Pos: Pos{File: "z.yaml", Line: 3}}
	comment := Ignore{Pos: Pos{File: "x.yaml", Line: 2}, Line: 3, Codes: []string{string(DependencyCycle)}, Reason: "on purpose"}

	for name, found := range map[string]Finding{"a member": first, "an effect": effect} {
		var s Ignores
		s.Add("HelmRelease", "a", "x", []Ignore{comment})
		if reason, silenced := s.Silences(found); !silenced || reason != "on purpose" {
			t.Errorf("%s: %q, %v", name, reason, silenced)
		}
		if _, silenced := s.Silences(second); silenced != (name == "a member") {
			t.Errorf("%s: the other member: %v", name, silenced)
		}
		if _, silenced := s.Silences(other); silenced {
			t.Errorf("%s: silences another finding", name)
		}
	}
}
