package reconcile

import "testing"

func TestShownValues(t *testing.T) {
	for text, want := range map[string]string{
		"https://example.org/a?b=c&d=e":  "https://example.org/a?b=c&d=e",
		"postgres://u:secret@db/a?ssl=1": "postgres://u:REDACTED@db/a?ssl=REDACTED",
		"https://user:pa?ss@example.org": "https://REDACTED@example.org",
		"user:secret@example.org":        "user:REDACTED@example.org",
		"plain":                          "plain",
	} {
		content := map[string]any{"kind": "HelmRelease", "spec": map[string]any{"values": "REDACTED"}}
		keepValues(content, map[string]any{"spec": map[string]any{"values": text}})
		if got := content["spec"].(map[string]any)["values"]; got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	other := map[string]any{"kind": "HelmRepository", "spec": map[string]any{"values": "REDACTED"}}
	keepValues(other, map[string]any{"spec": map[string]any{"values": "https://example.org/?a=b"}})
	if other["spec"].(map[string]any)["values"] != "REDACTED" {
		t.Error("values of another kind are given back")
	}
}
