package inventory

import (
	"sync/atomic"
	"testing"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// TestPart compares an inventory with a part to a whole one: it lists and finds the same objects, and keeps the validated
// form of the part only.
func TestPart(t *testing.T) {
	text := release("default", "a", template) + release("default", "b", template) + release("default", "broken", "spec: {version: 1.0.0}")
	whole, part := inventoryOf(t, text), inventoryOf(t, text)
	part.Part = func(obj *manifest.Object) bool {
		for obj.Origin != nil {
			obj = obj.Origin
		}
		return obj.Name == "a"
	}
	objects := part.Objects()
	if got, want := len(objects), len(whole.Objects()); got != want || got != 5 {
		t.Fatalf("%d objects, and %d of all", got, want)
	}
	for _, obj := range objects {
		first, err := part.Admit(obj)
		if (err != nil) != (obj.Name == "broken") {
			t.Errorf("%s: %v", obj, err)
		}
		if again, _ := part.Admit(obj); again != first {
			t.Errorf("%s is judged again", obj)
		}
	}
	var judged atomic.Int32
	kept := inventoryOf(t, text)
	kept.Part = part.Part
	kept.Refuse = func(*manifest.Object) error { judged.Add(1); return nil }
	for range 2 {
		for _, obj := range kept.Objects() {
			if part.Part(obj) {
				_, _ = kept.Admit(obj)
			}
		}
	}
	if n := judged.Load(); n != 5 {
		t.Errorf("%d judgements, want one of each object", n)
	}
	if _, err := kept.Find("HelmChart", "default", "default-b"); err != nil || judged.Load() != 6 {
		t.Errorf("what is beside the part: %v, %d judgements", err, judged.Load())
	}
}
