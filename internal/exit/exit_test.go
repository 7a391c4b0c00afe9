package exit

import (
	"errors"
	"fmt"
	"testing"
)

type passing bool

func (passing) Error() string     { return "passing" }
func (p passing) Transient() bool { return bool(p) }

// TestCodeOf checks the exit code of errors, also of wrapped ones.
func TestCodeOf(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), Failed},
		{Usagef("x"), Usage},
		{&OptionError{Option: "report", Err: Usagef("x")}, Usage},
		{passing(true), Transient},
		{passing(false), Failed},
		{&UsageError{Err: passing(true)}, Transient}, // a transient error is not wrong usage
		{fmt.Errorf("x: %w", ErrInterrupted), Interrupted},
		{errors.Join(passing(true), ErrInterrupted), Interrupted},
	} {
		for _, err := range []error{test.err, fmt.Errorf("run: %w", test.err)} {
			if got := CodeOf(err); got != test.want {
				t.Errorf("%v: exit code %d, want %d", err, got, test.want)
			}
		}
	}
}

// TestWorst joins all pairs of codes: the order of the two does not count, and the result is one of them.
func TestWorst(t *testing.T) {
	order := []int{OK, Drift, Transient, Failed, Usage, Integrity, Interrupted}
	for i, a := range order {
		for j, b := range order {
			if got, want := Worst(a, b), order[max(i, j)]; got != want {
				t.Errorf("%d and %d: %d, want %d", a, b, got, want)
			}
		}
	}
}
