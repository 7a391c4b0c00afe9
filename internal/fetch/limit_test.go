package fetch

import (
	"net/url"
	"testing"
)

// A slot is always at the host it was last moved to, and at no other.
func TestSlotMoves(t *testing.T) {
	s := &Slot{limit: &limiter{perHost: 2}}
	held := func() [2]int { return [2]int{len(s.limit.places("a")), len(s.limit.places("b"))} }
	for i, step := range []struct {
		do   func()
		want [2]int
	}{
		{func() {}, [2]int{0, 0}},
		{func() { _ = s.Move(t.Context(), &url.URL{Host: "a"}) }, [2]int{1, 0}},
		{func() { _ = s.Move(t.Context(), &url.URL{Host: "a"}) }, [2]int{1, 0}},
		{func() { _ = s.Move(t.Context(), &url.URL{Host: "b"}) }, [2]int{0, 1}},
		{s.Free, [2]int{0, 0}},
		{s.Free, [2]int{0, 0}},
	} {
		if step.do(); held() != step.want {
			t.Errorf("step %d: %v, want %v", i, held(), step.want)
		}
	}
}
