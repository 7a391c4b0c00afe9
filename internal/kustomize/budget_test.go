package kustomize

import (
	"errors"
	"testing"
)

// TestBudget counts what all builds of a run keep and do, in proportion to what they read.
func TestBudget(t *testing.T) {
	for _, test := range []struct {
		read, weight, work int64
		ok                 bool
	}{
		{0, baseMemory, 0, true}, {0, baseMemory + 2, 0, false}, {100, baseMemory + 100*memoryShare, 0, true}, {100, baseMemory + 100*memoryShare + 2, 0, false},
		{0, 0, baseWork - 4*readWork, true}, {0, 0, baseWork, false}, {1 << 20, 0, baseWork + workShare<<20 - 4*readWork - 2*byteWork<<20, true}, {1 << 20, 0, baseWork + workShare<<20, false},
	} {
		ended := 0
		b := NewBudget(func(error) { ended++ })
		err := errors.Join(b.Read("a", "a", int(test.read)), b.Read("a", "a", int(test.read)), // the same file
			b.Keep("a", test.weight/2), b.Keep("b", test.weight/2), b.Work("a", test.work/2), b.Work("b", test.work/2))
		if (err == nil) != test.ok || (b.Failure() == nil) != test.ok || test.ok == (ended == 1) {
			t.Errorf("%+v: %v, failure %v, ended %d times", test, err, b.Failure(), ended)
		}
	}
}
