package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/render"
)

// loadOptions returns the files and objects that the command line selects.
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
	options.Unset = o.render.unset()
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

// readClusters reads the manifests of all clusters that the command line selects.
func (a *app) readClusters(ctx context.Context, o *inputOptions, args []string, artifactsDir string) ([]*load.Input, error) {
	options, err := a.loadOptions(o, args, artifactsDir)
	if err != nil {
		return nil, err
	}
	return a.worker.Inputs(ctx, options)
}

// readSelected reads the manifests of all selected clusters, and returns an error if no object is selected.
func (a *app) readSelected(ctx context.Context, o *inputOptions, args []string, artifactsDir string) ([]*load.Input, error) {
	inputs, err := a.readClusters(ctx, o, args, artifactsDir)
	if err == nil {
		err = o.CheckSelected(inputs)
	}
	return inputs, err
}

// nothingToRead returns the error of a command line without files. Its advice names the mistake, if it can be guessed.
func nothingToRead(selectors []load.Selector) error {
	e := &exit.UsageError{Err: errors.New("no manifests to read"), Advice: "name files or directories with -f, or - for stdin"}
	if len(selectors) > 1 {
		if kind, ok := load.KindNamed(selectors[0].Text); ok {
			e.Advice += "; kind and name are one argument: " + kind + "/" + selectors[1].Text
		}
	}
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
