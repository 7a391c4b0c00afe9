package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
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
		options.Sources = append(options.Sources, load.Source{Selector: s, Dir: dir})
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
	return inputs, err
}

// nothingToRead is a command line without a file, unless one was meant.
func nothingToRead(selectors []load.Selector) error {
	e := &exit.UsageError{Err: errors.New("no manifests to read"), Advice: "name files or directories with -f, or - for stdin"}
	for _, s := range selectors {
		switch {
		case file.Exists(s.Text):
			e.Advice = meant(s.Text)
		case calledManifest(s.Text):
			e.Err = fmt.Errorf("%s: no such file or directory", s.Text)
		}
	}
	return e
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

// reportLeftOut is a warning to people, who should know, and a note to a reader who judges the
// input: nothing is wrong with it.
func (a *app) reportLeftOut(text string) {
	f := validate.New(nil, finding.LeftOut, text, "", manifest.Excerpt{})
	a.console.Keep(f)
	a.console.About(console.LevelWarning, console.Subject{}, text, f)
}
