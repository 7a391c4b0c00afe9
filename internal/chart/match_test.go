package chart

import "testing"

func TestMatchName(t *testing.T) {
	for _, tt := range []struct {
		got, want string
		match     bool
	}{
		{"podinfo", "podinfo", true},
		{"grafana", "another/grafana", true}, // §12 case 30
		{"podinfo", "podinfo2", false},
		{"Podinfo", "podinfo", false},
		{"grafana", "grafana/another", false},
		{"", "podinfo", false},
	} {
		if MatchName(tt.got, tt.want) != tt.match {
			t.Errorf("MatchName(%q, %q) is %t", tt.got, tt.want, !tt.match)
		}
	}
}

func TestMatchVersion(t *testing.T) {
	for _, tt := range []struct {
		got, want string
		match     bool
	}{
		{"1.2.3", "1.2.3", true},
		{"1.2.3", "v1.2.3", true},
		{"v1.2.3", "1.2.3", true},
		{"1.2", "1.2.0", true},
		{"1.2.3+b1", "1.2.3_b1", true},
		{"v1.2.3+b1", "1.2.3_b1", true},
		{"1.2.3+b1", "1.2.3+b2", false},
		{"1.2.3+b1", "1.2.3", false},
		{"1.2.3-rc.1", "1.2.3", false},
		{"0.1.0", "6.17.4", false}, // §12 case 28, as changed by decision C2
		{"latest", "latest", true},
		{"latest", "vlatest", false},
		{"latest", "1.0.0", false},
		{"a_b", "a+b", false},
	} {
		if MatchVersion(tt.got, tt.want) != tt.match {
			t.Errorf("MatchVersion(%q, %q) is %t", tt.got, tt.want, !tt.match)
		}
	}
}
