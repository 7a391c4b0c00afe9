// Package load reads the manifests of a command: it finds their clusters, builds each, and selects the objects.
// It reports errors in them, and does not know flags.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Options select the files to read, their clusters, and the objects.
type Options struct {
	Names            []string // files, directories and patterns, - for standard input
	Offered          []string // files that need not be manifests
	SkipDirs         []string
	LookupDirs       []string
	Recursive        bool
	Clusters         []string // names or patterns, nil for all
	Selectors        []Selector
	Namespace        string // select only this namespace, "" for all
	DefaultNamespace string
	SameNamespace    bool
	FluxVersion      string
	FluxOption       string // the user's option for FluxVersion, for advice
	Untrusted        bool
	Shard            Shard
	Validating       bool // rejections are reported like other findings
	AllowEmpty       bool // the selection may be empty
	Variables        map[string]string
	Unset            render.Unset
	Sources          []Source
}

// A Reader reads manifests for the runs of one command, and reports errors in them.
type Reader struct {
	Console *console.Console
	Getenv  func(string) string
	Stdin   io.Reader

	Unusable   int // objects that are duplicates, of an unknown kind, or could not be prepared for admission
	Unreadable int // files
}

// A Reading holds the files of a run, before its clusters are built.
type Reading struct {
	reader   *Reader
	o        *Options
	files    *manifest.Input
	renderer *render.Renderer
	Clusters []*Cluster
	common   *common
}

// Inputs reads the manifests, and returns an input for each selected cluster. It reports files that
// cannot be read, which make the exit code 2, and continues with the other files.
func (l *Reader) Inputs(ctx context.Context, o *Options) ([]*Input, error) {
	r, err := l.Choose(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	var results []*render.Result
	for _, c := range r.Clusters {
		result, err := c.Result(ctx)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	defer l.Console.In("")
	var inputs []*Input
	for i, c := range r.Clusters {
		results[i].WarnPatches()
		in, err := r.Input(ctx, c, results[i])
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	if loose := r.renderer.Loose(results); loose != nil {
		in, err := r.Input(ctx, &Cluster{}, loose)
		if err != nil {
			return nil, err
		}
		in.Loose = true
		inputs = append(inputs, in)
	}
	inputs[0].Unreached = r.renderer.Unreached()
	return inputs, nil
}

type fetcher func(c *render.Cluster, needs []render.Need, known *manifest.Build) []render.Source

// Choose reads the manifests and selects the clusters. get fetches missing sources, and
// may be nil.
func (l *Reader) Choose(ctx context.Context, o *Options, get fetcher) (*Reading, error) {
	r := l.Read(ctx, o, get)
	var err error
	if r.Clusters, err = o.Choose(r.Clusters); err != nil {
		return nil, err
	}
	if len(r.Clusters) > 1 {
		names := NamesOf(r.Clusters)
		l.Console.Info(console.Subject{}, fmt.Sprintf("%d clusters, each checked separately: %s", len(names), console.Few(names)))
		if !o.Validating { // the command validate does that itself
			l.Console.Divide(names) // print findings of several clusters once
		}
	}
	return r, nil
}

// Read reads the manifests, each file once.
func (l *Reader) Read(ctx context.Context, o *Options, get fetcher) *Reading {
	in := manifest.Read(ctx, manifest.Options{
		Files:            o.Names,
		Offered:          o.Offered,
		LookupDirs:       o.LookupDirs,
		Recursive:        o.Recursive,
		Stdin:            l.Stdin,
		DefaultNamespace: o.DefaultNamespace,
		SkipDirs:         o.SkipDirs,
		Untrusted:        o.Untrusted,
		Secrets:          l.Console.Secrets(),
	})
	renderer := render.New(ctx, in, l.rendering(o, get))
	named := &common{noted: map[string]bool{}, Options: o}
	for _, name := range o.Names {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			named.Dirs = append(named.Dirs, name)
		}
	}
	return &Reading{l, o, in, renderer, clustersOf(renderer), named}
}

// rendering returns the options for the renderer.
func (l *Reader) rendering(o *Options, get fetcher) render.Options {
	var sources []render.Source
	for _, s := range o.Sources {
		sources = append(sources, s.Rendered())
	}
	return render.Options{
		Variables: o.Variables,
		Unset:     o.Unset,
		Tolerant:  o.Validating,
		Nearest:   !o.Validating,
		Admit: func(obj *manifest.Object) error {
			if obj.Group() == manifest.OperatorGroup {
				return admission.Operator(obj)
			}
			_, err := admission.Admit(obj)
			return err
		},
		Sources:   sources,
		SkipDirs:  o.SkipDirs,
		Fetch:     get,
		Untrusted: o.Untrusted,
		Namespace: o.DefaultNamespace,
		Getenv:    l.Getenv,
		Secrets:   l.Console.Secrets(),
	}
}

// Result builds the cluster. It returns an error if the build exceeds the budget.
func (c *Cluster) Result(ctx context.Context) (*render.Result, error) {
	result := c.Build()
	if err := c.Exhausted(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return result, nil
}

// Known returns an input of built objects without reporting anything. It also returns the errors of files and objects.
func (r *Reading) Known(ctx context.Context, of *Cluster, rendered *render.Result) (*Input, []error, error) {
	o, console := r.o, r.reader.Console
	set, failures := r.files.Set(rendered.Build)
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("cannot read the input: %w", context.Cause(ctx))
	}
	console.ConcealNames(set.Objects())
	inventory := inventory.New(set)
	inventory.Expansions, inventory.SameNamespace = expansionsOf(rendered), o.SameNamespace
	if o.Shard.Count > 1 {
		inventory.Part = o.Shard.has
	}
	flux, err := o.distribution(set)
	if err != nil {
		return nil, nil, err
	}
	if !o.Validating {
		inventory.Refuse = func(obj *manifest.Object) error {
			if obj.Group() == manifest.ImageGroup {
				return nil // only read, in any version
			}
			return flux.refuse(obj)
		}
	}
	if slices.ContainsFunc(set.Objects(), (*manifest.Object).Tainted) { // HelmCharts have the names of their releases
		console.ConcealNames(inventory.Objects())
	}
	return &Input{
		Distribution: flux, Set: set, Cluster: of.Shown, Called: of.Name, Begins: of.begins(), Rendered: rendered, Inventory: inventory,
		table: reconcile.Kinds(), Selectors: o.Selectors, Namespace: o.Namespace, Shard: o.Shard, validating: o.Validating,
		Reported: map[*manifest.Object]bool{}, common: r.common,
	}, failures, nil
}

// Input returns an input of built objects, and reports its errors.
func (r *Reading) Input(ctx context.Context, of *Cluster, rendered *render.Result) (*Input, error) {
	l := r.reader
	l.Console.In(of.Shown)
	in, failures, err := r.Known(ctx, of, rendered)
	if err != nil {
		return nil, err
	}
	l.reportRendered(in)
	l.reportLinks(in, r.files.Links())
	for _, skip := range in.Set.Skips() {
		l.Console.Debug(console.Subject{}, fmt.Sprintf("skipped %s: %s", skip.File, strings.TrimPrefix(skip.Reason, skip.File+":")))
	}
	for _, err := range failures {
		l.fail(in, err)
	}
	return in, nil
}

// fail reports an object that cannot be used, or a file that cannot be read.
func (l *Reader) fail(in *Input, err error) {
	first := in.Once(err.Error())
	f := validate.Unreadable(err)
	if object, ok := errors.AsType[*manifest.ObjectError](err); ok {
		in.unusable = append(in.unusable, object.Object)
	}
	switch {
	case f.Code == finding.DuplicateObject:
		l.found(in, f)
	case !first && (in.validating || in.Cluster == ""):
		return
	default:
		text, placed := strings.CutPrefix(err.Error(), f.Pos.String()+": ")
		l.Console.ReportAs(f, console.Presentation{Text: text, Placed: placed})
	}
	code := inputCode(err)
	in.Code = exit.Worst(in.Code, code)
	if first && code == exit.Failed {
		l.Unusable++
	}
	if first && (f.Code == finding.Unreadable || f.Code == finding.Syntax) {
		l.Unreadable++
	}
}

// inputCode returns the exit code of an object that cannot be used, or of a file that cannot be read.
func inputCode(err error) int {
	var duplicate *manifest.DuplicateError
	var object *manifest.ObjectError
	if errors.As(err, &duplicate) || errors.As(err, &object) || finding.CodeOf(err) == finding.UnknownKind {
		return exit.Failed
	}
	return exit.Usage
}

// reportLinks warns of links that are not followed.
func (l *Reader) reportLinks(in *Input, links []manifest.Link) {
	for _, link := range links {
		if !in.Once("link " + link.Name) {
			continue
		}
		f := validate.New(nil, finding.OutsideLink, link.Text(), "", manifest.Excerpt{Pos: manifest.Pos{File: link.Name}})
		if in.validating {
			in.Found = append(in.Found, f)
			continue
		}
		l.Console.ReportAs(f, console.Presentation{Placed: true, Brief: true})
	}
}

// expansionsOf returns the artifacts of generators with a pathPattern, as far as the files show them.
func expansionsOf(rendered *render.Result) map[string][]inventory.Expansion {
	expansions := map[string][]inventory.Expansion{}
	for _, e := range rendered.Expansions {
		name := e.Generator.Namespace + "/" + e.Generator.Name
		expansions[name] = append(expansions[name], inventory.Expansion{Index: e.Index, Name: e.Name, Labels: e.Labels})
	}
	return expansions
}

// StoredKey returns the key of an object's files in a store: there, a name from a Secret is replaced.
func StoredKey(obj *manifest.Object) store.Key {
	namespace, name := obj.StoredAs()
	return store.NewKey(obj.Kind, namespace, name)
}

// RenameStored renames the files of objects whose names are replaced.
func RenameStored(inv *inventory.Inventory, st *store.Store) {
	for _, obj := range inv.Objects() {
		if key, stored := store.NewKey(obj.Kind, obj.Namespace, obj.Name), StoredKey(obj); key != stored {
			st.Rename(key, stored)
		}
	}
}

// A RecordID identifies a record of an artifacts directory.
type RecordID struct{ Group, Kind, Namespace, Name string }

// RecordOf returns the identity of the record of an object of the input.
func RecordOf(obj *manifest.Object) RecordID {
	namespace, name := obj.StoredAs()
	return RecordID{obj.Group(), obj.Kind, namespace, name}
}

// Recorded returns the identity of a record by the object in it.
func Recorded(obj *manifest.Object) RecordID {
	return RecordID{obj.Group(), obj.Kind, obj.Namespace, obj.Name}
}

// ReportFlux1 prints the one line about HelmReleases of Flux 1.
func (l *Reader) ReportFlux1(inputs ...*Input) {
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
	l.Console.Keep(f)
	l.Console.About(console.LevelWarning, console.Subject{}, fmt.Sprintf("%s: %s: see 'helmsrc explain %s'", first.Position("apiVersion"), text, finding.EndOfLife), f)
}
