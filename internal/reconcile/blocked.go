package reconcile

import (
	"errors"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// blockedError is the failure of an object that only the failure of another one causes.
type blockedError struct {
	by  *manifest.Object
	err error // of that object
}

func (e *blockedError) Error() string { return e.err.Error() }

func (e *blockedError) Unwrap() error { return e.err }

// blockedBy is the failure of an object as that of another one, in the same words.
func blockedBy(by *manifest.Object, err error) error {
	failure := *status.AsFailure(err)
	failure.Err = &blockedError{by, err}
	return &failure
}

// BlockedBy returns the object whose failure is the only reason for this one: the source of a chart or release, or a
// repository that is included. It is empty where something is wrong with the object itself.
func (r *Result) BlockedBy() finding.Object {
	if r.State != Failed || r.Failure == nil {
		return finding.Object{}
	}
	return blockerOf(r.Failure)
}

func blockerOf(failure *status.Failure) finding.Object {
	if is[*inventory.IncludeCycleError](failure) {
		return finding.Object{}
	}
	if blocked, ok := errors.AsType[*blockedError](failure); ok {
		return validate.Named(blocked.by)
	}
	return validate.BlockedBy(failure)
}
