package reconcile

import (
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/conceal"
)

func TestRedacted(t *testing.T) {
	t.Parallel()
	given := map[string]any{"a": []any{"http://c:pa55@d.test", int64(7), nil}, "b": map[string]any{"c": "http://d?e=pa55"}}
	got, ok := conceal.Fields(given, func(_, text string) string { return auth.RedactText(text) }).(map[string]any)
	if !ok {
		t.Fatal("another type")
	}
	if list := got["a"].([]any); list[0] != "http://c:REDACTED@d.test" || list[1] != int64(7) || list[2] != nil {
		t.Errorf("list: %v", list)
	}
	if inner := got["b"].(map[string]any); inner["c"] != "http://d?e=REDACTED" {
		t.Errorf("map: %v", inner)
	}
	if given["a"].([]any)[0] != "http://c:pa55@d.test" {
		t.Error("the input was changed: requests need the real URL")
	}
}
