package manifest

import "testing"

// TestVeil checks that names made from confidential fields are replaced, and found again if a field contains them.
func TestVeil(t *testing.T) {
	spec := func(version, ref string) map[string]any {
		return map[string]any{"spec": map[string]any{"version": version, "chart": "podinfo", "ref": map[string]any{"branch": ref}}}
	}
	o := &Object{Content: spec("1.0.0-zq9", "b")}
	o.Confide([]string{"zq9", "1.0.0-zq9", "b"}, spec("1.0.0-REDACTED", "REDACTED"))
	for name, same := range map[string]bool{
		"1.0.0-zq9": false, "podinfo-1.0.0-zq9": false, "b@sha1:abc": false, "b": false,
		"1.0.0": true, "podinfo-6.5.0": true, "abc@sha1:b": true, "main": true,
	} {
		veiled := o.Veil(name)
		if (veiled == name) != same || o.Veil(veiled) != veiled {
			t.Errorf("%s: %s", name, veiled)
		}
	}
	for _, name := range []string{"1.0.0-zq9", "b@sha1:abc", "main", "REDACTED-unknown"} {
		if got := o.Unveil(o.Veil(name)); got != name {
			t.Errorf("%s: %s", name, got)
		}
	}
	plain := &Object{Content: spec("1.0.0-zq9", "b")}
	if plain.Veil("1.0.0-zq9") != "1.0.0-zq9" || plain.Unveil("REDACTED-x") != "REDACTED-x" {
		t.Error("an object without secrets has no other names")
	}
	derived := plain.Derive(Object{Content: spec("1.0.0-zq9", "c")}, nil)
	derived.Confide([]string{"zq9", "elsewhere"}, nil)
	if derived.Veil("1.0.0-zq9") == "1.0.0-zq9" || derived.Veil("elsewhere") != "elsewhere" {
		t.Error("only what names are made of counts")
	}
}
