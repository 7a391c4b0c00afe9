package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// checkLooked is the usage error for inputs that hold nothing to judge: a check does not
// pass in silence. Files that are arguments may be of any kind, as a hook passes them.
func (o *inputOptions) checkLooked(ctx context.Context, inputs []*load.Input, args []string) error {
	given, err := splitArguments(args, len(o.files) == 0)
	offered := err == nil && len(given.files) > 0 && len(given.dirs)+len(o.files) == 0
	for _, in := range inputs {
		built := func(o *manifest.Object) bool { return o.Group() == manifest.KustomizeGroup && in.Asked(o) }
		looked := slices.ContainsFunc(in.Inventory.Objects(), in.Wanted) || slices.ContainsFunc(in.Rendered.Judged, built) || len(in.Found) > 0 || in.Code != exit.OK
		if looked || o.allowEmpty || offered {
			return nil
		}
	}
	return o.nothingSelected(ctx, inputs[0])
}

// nothingSelected says what there is instead, and what would find more.
func (o *inputOptions) nothingSelected(ctx context.Context, in *load.Input) error {
	if in.Namespace != "" && len(in.Selectors) == 0 && slices.ContainsFunc(in.Inventory.Objects(), reconcile.Kinds().Supports) {
		return &exit.UsageError{Err: errors.New("nothing selected: " + in.Kinds()), Advice: "none of them is in namespace " + in.Namespace}
	}
	if in.Code == exit.Usage { // which is an error that was reported
		return &exit.UsageError{Err: errors.New("nothing selected: not all of the input could be read")}
	}
	hint := o.deeper(ctx, in)
	switch {
	case hint != "":
	case onlyGroup(in, manifest.KustomizeGroup):
		hint = "Kustomizations are built where directories are given: -R -f DIRECTORY"
	default:
		hint = "helmsrc works on " + strings.Join(bareKinds(reconcile.Kinds().Names()), ", ") + "; --allow-empty accepts an input without them"
	}
	return &exit.UsageError{Err: errors.New("nothing selected: " + in.Kinds()), Advice: hint}
}

// onlyGroup reports whether all that was skipped of Flux is of one API group.
func onlyGroup(in *load.Input, group string) bool {
	skipped := in.Set.Skipped()
	return len(skipped) > 0 && !slices.ContainsFunc(skipped, func(s manifest.KindCount) bool { return s.Group != group })
}

// deeper is a hint that -R would find objects, "" if it would not.
func (o *inputOptions) deeper(ctx context.Context, in *load.Input) string {
	if o.Recursive || len(in.Dirs) == 0 {
		return ""
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
	if len(kinds) == 0 {
		return ""
	}
	return "-R descends into the directories below, which hold " + strings.Join(kinds, ", ")
}

// bareKinds are the names of kinds without their API groups, each once.
func bareKinds(kinds []string) []string {
	var bare []string
	for _, kind := range kinds {
		if name := manifest.BareKind(kind); !slices.Contains(bare, name) {
			bare = append(bare, name)
		}
	}
	return bare
}
