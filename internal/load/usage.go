package load

import (
	"context"
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// A NoObjectError is the error of an argument that matches no object of the inputs.
type NoObjectError struct {
	Selector Selector
	Next     *Selector // the next argument, may be nil
	Inputs   []*Input  // nil for the records of an artifacts directory
}

func (e *NoObjectError) Error() string {
	if e.Inputs == nil {
		return e.Selector.Text + ": no such object is recorded"
	}
	if slices.ContainsFunc(e.Inputs, func(in *Input) bool { return in.Code == exit.Usage || len(in.unusable) > 0 }) {
		return e.Selector.Text + ": no such object in the readable part of the input"
	}
	return e.Selector.Text + ": no such object in the input"
}

// An UnusableError is the error of an argument that matches an object with an error, which was reported.
type UnusableError struct {
	Selector Selector
	Code     int // exit code of the reported error
}

func (e *UnusableError) Error() string { return e.Selector.Text + ": the object cannot be used" }

// A NothingSelectedError is the error of an input without selected objects.
type NothingSelectedError struct{ Input *Input }

func (e *NothingSelectedError) Error() string {
	if e.Input.Code == exit.Usage && !e.Elsewhere() { // the error was reported
		return "nothing selected: not all of the input could be read"
	}
	return "nothing selected: " + e.Input.Kinds()
}

// Elsewhere reports whether the input has objects, but only outside of the selected namespace.
func (e *NothingSelectedError) Elsewhere() bool {
	in := e.Input
	return in.Namespace != "" && len(in.Selectors) == 0 && slices.ContainsFunc(in.Inventory.Objects(), reconcile.Kinds().Supports)
}

// NothingSelected returns the usage error for an input without selected objects.
func (in *Input) NothingSelected() error {
	return &exit.UsageError{Err: &NothingSelectedError{in}}
}

// CheckSelected returns a usage error if a selector matches no object, or if the selection is empty and must not be.
func (o *Options) CheckSelected(inputs []*Input) error {
	if err := CheckSelectors(inputs); err != nil {
		return err
	}
	for _, in := range inputs {
		if o.AllowEmpty || slices.ContainsFunc(in.Inventory.Objects(), in.Selected) {
			return nil
		}
		if len(in.Selectors) == 0 && in.Code == exit.Failed && len(in.Set.Objects()) == 0 {
			return nil // the reason was reported
		}
	}
	return inputs[0].NothingSelected()
}

// CheckSelectors returns a usage error if a selector matches no object, or objects of several API groups. It returns an
// UnusableError if all matching objects have errors.
func CheckSelectors(inputs []*Input) error {
	selectors := inputs[0].Selectors
	var unusable *UnusableError
	found := false
	for i, s := range selectors {
		fits := func(in *Input) bool { return slices.ContainsFunc(in.Inventory.Objects(), s.Matches) }
		if at := slices.IndexFunc(inputs, fits); at >= 0 {
			if err := s.Ambiguous(inputs[at].Inventory.Objects()); err != nil {
				return err
			}
			found = true
			continue
		}
		if slices.ContainsFunc(inputs, func(in *Input) bool { return slices.ContainsFunc(in.unusable, s.Matches) }) {
			unusable = &UnusableError{s, exit.Failed}
			continue
		}
		e := &NoObjectError{Selector: s, Inputs: inputs}
		if i+1 < len(selectors) {
			e.Next = &selectors[i+1]
		}
		return &exit.UsageError{Err: e}
	}
	if unusable == nil || found {
		return nil
	}
	for _, in := range inputs {
		unusable.Code = exit.Worst(unusable.Code, in.Code)
	}
	return unusable
}

// CheckJudged returns a usage error if the inputs have nothing to check: an empty check must not pass. Files that are
// arguments may be of any kind, because hooks pass all of them.
func (o *Options) CheckJudged(inputs []*Input) error {
	offered := len(o.Offered) > 0 && len(o.Names) == 0
	for _, in := range inputs {
		built := func(obj *manifest.Object) bool {
			return (obj.Group() == manifest.KustomizeGroup || obj.Group() == manifest.OperatorGroup) && in.Asked(obj)
		}
		looked := slices.ContainsFunc(in.Inventory.Objects(), in.Wanted) || slices.ContainsFunc(in.Rendered.Judged, built) || len(in.Found) > 0 || in.Code != exit.OK
		if looked || o.AllowEmpty || offered {
			return nil
		}
	}
	return inputs[0].NothingSelected()
}

// KindsBelow counts the objects for a run in subdirectories of the named directories: "2 HelmChart", and so on. The result
// is empty if the subdirectories were read, or have no such objects.
func (o *Options) KindsBelow(ctx context.Context, in *Input) []string {
	if o.Recursive || len(in.Dirs) == 0 {
		return nil
	}
	set, _ := manifest.Load(ctx, manifest.Options{Files: in.Dirs, Recursive: true, DefaultNamespace: o.DefaultNamespace})
	counts := map[string]int{}
	for _, obj := range set.Objects() {
		if reconcile.Kinds().Supports(obj) {
			counts[obj.Kind]++
		}
	}
	var kinds []string
	for _, kind := range reconcile.Kinds().Names() {
		if counts[kind] > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	return kinds
}
