package fetch

import (
	"slices"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	c := NewClient(Config{Rand: func() float64 { return 0.5 }})
	var got []time.Duration
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 63, 64, 1000} {
		got = append(got, c.backoff(n))
	}
	want := []time.Duration{250e6, 500e6, 1e9, 2e9, 4e9, 5e9, 5e9, 5e9, 5e9, 5e9}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c = NewClient(Config{})
	if a := c.backoff(1); a < 0 || a >= backoffBase {
		t.Errorf("jitter out of range: %v", a)
	}
}
