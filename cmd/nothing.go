package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// checkLooked is the usage error for inputs that hold nothing to judge: a check does not
// pass in silence. Files that are arguments may be of any kind, as a hook passes them.
func (o *inputOptions) checkLooked(ctx context.Context, inputs []*input, args []string) error {
	given, err := splitArguments(args, len(o.files) == 0)
	offered := err == nil && len(given.files) > 0 && len(given.dirs)+len(o.files) == 0
	for _, in := range inputs {
		built := func(o *manifest.Object) bool { return o.Group() == manifest.KustomizeGroup && in.asked(o) }
		looked := slices.ContainsFunc(in.inventory.Objects(), in.wanted) || slices.ContainsFunc(in.rendered.Judged, built) || len(in.found) > 0 || in.code != exitOK
		if looked || o.allowEmpty || offered {
			return nil
		}
	}
	return o.nothingSelected(ctx, inputs[0])
}

// nothingSelected says what there is instead, and what would find more.
func (o *inputOptions) nothingSelected(ctx context.Context, in *input) error {
	if in.namespace != "" && len(in.selectors) == 0 && slices.ContainsFunc(in.inventory.Objects(), reconcile.Kinds().Supports) {
		return &usageError{err: errors.New("nothing selected: " + in.kinds()), hint: "none of them is in namespace " + in.namespace}
	}
	if in.code == exitUsage { // which is an error that was reported
		return &usageError{err: errors.New("nothing selected: not all of the input could be read")}
	}
	hint := o.deeper(ctx, in)
	switch {
	case hint != "":
	case in.onlyGroup(manifest.KustomizeGroup):
		hint = "Kustomizations are built where directories are given: -R -f DIRECTORY"
	default:
		hint = "helmsrc works on " + strings.Join(bareKinds(reconcile.Kinds().Names()), ", ") + "; --allow-empty accepts an input without them"
	}
	return &usageError{err: errors.New("nothing selected: " + in.kinds()), hint: hint}
}

// onlyGroup reports whether all that was skipped of Flux is of one API group.
func (in *input) onlyGroup(group string) bool {
	skipped := in.set.Skipped()
	return len(skipped) > 0 && !slices.ContainsFunc(skipped, func(s manifest.KindCount) bool { return s.Group != group })
}

// deeper is a hint that -R would find objects, "" if it would not.
func (o *inputOptions) deeper(ctx context.Context, in *input) string {
	if o.recursive || len(in.dirs) == 0 {
		return ""
	}
	set, _ := manifest.Load(ctx, manifest.Options{Files: in.dirs, Recursive: true, DefaultNamespace: o.defaultNamespace})
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
	return "-R descends into the directories below, which hold " + join(kinds)
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
