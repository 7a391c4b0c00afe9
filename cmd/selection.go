package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// loadOptions says what the command line asks to be read.
func (a *app) loadOptions(o *inputOptions, args []string, artifactsDir string) (*load.Options, error) {
	given, err := splitArguments(args, len(o.files) == 0)
	if err != nil {
		return nil, err
	}
	if len(o.files)+len(given.files)+len(given.dirs) == 0 {
		return nil, nothingToRead(given.selectors)
	}
	a.reportIgnoredFile()
	options := o.Options
	options.Names, options.Offered = slices.Concat(splitNames(o.files), given.dirs), given.files
	options.Selectors, options.SkipDirs = given.selectors, []string{artifactsDir}
	options.FluxOption = "--flux-version"
	options.Unset = o.render.strict.unset()
	options.Variables = map[string]string{}
	for _, text := range o.render.substitute {
		key, value, found := strings.Cut(text, "=")
		if !found || !render.ValidName(key) {
			// The value may be a password and is not printed.
			return nil, exit.Usagef("--substitute: not of the form KEY=VALUE, with letters, digits and _ in the key")
		}
		options.Variables[key] = value
	}
	for _, text := range o.render.sources {
		s, dir, err := parseSource(text)
		if err != nil {
			return nil, err
		}
		options.Sources = append(options.Sources, render.Source{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, Dir: dir})
	}
	return &options, nil
}

// readClusters reads the manifests of all clusters that the command line chooses.
func (a *app) readClusters(ctx context.Context, o *inputOptions, args []string, artifactsDir string) ([]*load.Input, error) {
	options, err := a.loadOptions(o, args, artifactsDir)
	if err != nil {
		return nil, err
	}
	inputs, err := a.worker.Inputs(ctx, options)
	return inputs, withOption(err)
}

// nothingToRead is a command line without a file, unless one was meant.
func nothingToRead(selectors []load.Selector) error {
	e := &exit.UsageError{Err: errors.New("no manifests to read"), Advice: "name files or directories with -f, or - for stdin"}
	for _, s := range selectors {
		switch {
		case exists(s.Text):
			e.Advice = meant(s.Text)
		case calledManifest(s.Text):
			e.Err = fmt.Errorf("%s: no such file or directory", s.Text)
		}
	}
	return e
}

// check is the usage error for selectors without an object, and for a selection
// that is empty.
func (o *inputOptions) check(ctx context.Context, inputs []*load.Input) error {
	if err := o.checkSelectors(ctx, inputs[0].Selectors, inputs...); err != nil {
		return err
	}
	for _, in := range inputs {
		if o.allowEmpty || slices.ContainsFunc(in.Inventory.Objects(), in.Selected) {
			return nil
		}
		if len(in.Selectors) == 0 && in.Code == exit.Failed && len(in.Set.Objects()) == 0 {
			return nil // why there is none was reported
		}
	}
	return o.nothingSelected(ctx, inputs[0])
}

// checkSelectors wants each selector to fit an object of one of the inputs.
func (o *inputOptions) checkSelectors(ctx context.Context, selectors []load.Selector, inputs ...*load.Input) error {
	for i, s := range selectors {
		fits := func(in *load.Input) bool { return slices.ContainsFunc(in.Inventory.Objects(), s.Matches) }
		if at := slices.IndexFunc(inputs, fits); at >= 0 {
			if err := s.Ambiguous(inputs[at].Inventory.Objects()); err != nil {
				return err
			}
			continue
		}
		e := &exit.UsageError{Err: fmt.Errorf("%s: no such object in the input", s.Text), Advice: meant(s.Text)}
		if slices.ContainsFunc(inputs, func(in *load.Input) bool { return in.Code == exit.Usage }) {
			e.Err = fmt.Errorf("%s: no such object in what could be read of the input", s.Text)
		}
		if kind, ok := load.KindNamed(s.Text); ok && i+1 < len(selectors) {
			e.Advice = "kind and name are one argument: " + kind + "/" + selectors[i+1].Text
		}
		if e.Advice == "" {
			e.Advice = nearestObject(s, inputs)
		}
		if e.Advice == "" {
			e.Advice = o.deeper(ctx, inputs[0])
		}
		return e
	}
	return nil
}

// reportSkipped prints the one line about Flux kinds that are not supported.
func (a *app) reportSkipped(inputs []*load.Input) {
	var parts []string
	for _, s := range skippedOf(inputs) {
		if s.Group == manifest.KustomizeGroup {
			a.reportLeftOut(fmt.Sprintf("skipped %d %s: only those in directories are built, name one with -f", s.Count, s.Kind))
			continue
		}
		if s.Group == manifest.OperatorGroup {
			a.reportLeftOut(fmt.Sprintf("%d %s not expanded: what they make takes no part in this", s.Count, s.Kind))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", s.Count, s.Kind))
	}
	if len(parts) > 0 {
		a.reportLeftOut("skipped " + strings.Join(parts, ", ") + ": not supported yet")
	}
}

// skippedOf counts what was skipped in several clusters. A kind counts as often as in the cluster that has most of it: they
// share files.
func skippedOf(inputs []*load.Input) []manifest.KindCount {
	var all []manifest.KindCount
	for _, in := range inputs {
		for _, s := range in.Set.Skipped() {
			i := slices.IndexFunc(all, func(k manifest.KindCount) bool { return k.Kind == s.Kind && k.Group == s.Group })
			if i < 0 {
				all = append(all, s)
			} else {
				all[i].Count = max(all[i].Count, s.Count)
			}
		}
	}
	return all
}

// reportFlux1 prints the one line about HelmReleases of Flux 1.
func (a *app) reportFlux1(inputs ...*load.Input) {
	var first *manifest.Object
	count := 0
	for _, in := range inputs {
		for _, obj := range in.Set.Objects() {
			if !inventory.IsOperated(obj) || !in.Asked(obj) {
				continue
			}
			if count++; first == nil {
				first = obj
			}
		}
	}
	if first == nil {
		return
	}
	text := fmt.Sprintf("%d HelmReleases are of Flux 1, which ended in 2022", count)
	if count == 1 {
		text = "a HelmRelease is of Flux 1, which ended in 2022"
	}
	f := validate.New(first, finding.EndOfLife, text, "", first.Excerpt("apiVersion"))
	a.console.Keep(f)
	a.console.About(console.LevelWarning, console.Subject{}, fmt.Sprintf("%s: %s: see 'helmsrc explain %s'", first.Position("apiVersion"), text, finding.EndOfLife), f)
}

// reportLeftOut is a warning to people, who should know, and a note to a reader who judges the
// input: nothing is wrong with it.
func (a *app) reportLeftOut(text string) {
	f := validate.New(nil, finding.LeftOut, text, "", manifest.Excerpt{})
	a.console.Keep(f)
	a.console.About(console.LevelWarning, console.Subject{}, text, f)
}
