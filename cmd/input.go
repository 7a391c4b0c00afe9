package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/render"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// input is what a command works on: the manifests of one cluster, and those of their objects
// that the arguments select. inputOfBuild makes it; what is found out about it is added by the command's own goroutine.
type input struct {
	set       *manifest.Set
	cluster   string   // its name where there are several, else ""
	called    string   // its name, "" if it begins nowhere
	begins    string   // the directory that it begins in
	loose     bool     // it is about files that nothing applies
	unreached []string // files that nothing applies, of all clusters
	rendered  *render.Result
	inventory *inventory.Inventory
	table     reconcile.Table // the kinds of a run
	selectors []selector
	namespace string
	brought   map[store.Key]bool // selected because what is rendered needs them
	shard     shard
	reported  map[*manifest.Object]bool // rejections that were printed
	*distribution
	code int // of what went wrong while reading and judging

	*common
	validating bool              // rejections and what was found before are findings like others
	found      []finding.Finding // then
}

// common is what the inputs of a run share: one for each cluster.
type common struct {
	dirs    []string        // that were named
	noted   map[string]bool // printed lines: files beside the input, what the renderer says, what cannot be read
	ignores finding.Ignores
}

// once reports whether a line was not printed yet.
func (c *common) once(line string) bool {
	if c.noted[line] {
		return false
	}
	c.noted[line] = true
	return true
}

// readClusters reads the manifests, and makes an input of each cluster that they hold and that the flags choose. What cannot
// be read is reported and makes the exit code 2; the rest goes on.
func (a *app) readClusters(ctx context.Context, o *inputOptions, args []string, artifactsDir string) ([]*input, error) {
	r, err := a.read(ctx, o, args, artifactsDir, nil)
	if err != nil {
		return nil, err
	}
	if r.clusters, err = o.choose(r.clusters); err != nil {
		return nil, err
	}
	a.sayClusters(r.clusters)
	results, err := r.build(ctx)
	if err != nil {
		return nil, err
	}
	a.divide(o, r.clusters)
	defer a.console.In("")
	var inputs []*input
	for i, c := range r.clusters {
		in, err := a.inputOfBuild(ctx, o, r, c, results[i])
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	if loose := r.renderer.Loose(results); loose != nil {
		in, err := a.inputOfBuild(ctx, o, r, &cluster{}, loose)
		if err != nil {
			return nil, err
		}
		in.loose = true
		inputs = append(inputs, in)
	}
	inputs[0].unreached = r.renderer.Unreached()
	return inputs, nil
}

// divide has findings that several clusters have in common printed once. The command validate does that by itself.
func (a *app) divide(o *inputOptions, clusters []*cluster) {
	if len(clusters) > 1 && !o.validating {
		a.console.Divide(namesOf(clusters))
	}
}

// reading is what was read for a run, before its clusters are built.
type reading struct {
	files     *manifest.Input
	renderer  *render.Renderer
	clusters  []*cluster
	selectors []selector
	common    *common
}

// read reads the manifests, each file once. Sources that are not here are got by a function, nil for none.
func (a *app) read(ctx context.Context, o *inputOptions, args []string, artifactsDir string, get fetcher) (*reading, error) {
	given, err := splitArguments(args, len(o.files) == 0)
	if err != nil {
		return nil, err
	}
	selectors := given.selectors
	if len(o.files)+len(given.files)+len(given.dirs) == 0 {
		return nil, nothingToRead(selectors)
	}
	named := slices.Concat(splitNames(o.files), given.dirs)
	a.reportIgnoredFile()
	options, err := a.renderOptions(o)
	if err != nil {
		return nil, err
	}
	options.Nearest, options.SkipDirs, options.Fetch = !o.validating, []string{artifactsDir}, get
	in := manifest.Read(ctx, manifest.Options{
		Files:            named,
		Offered:          given.files,
		LookupDirs:       o.lookupDirs,
		Recursive:        o.recursive,
		Stdin:            a.env.Stdin,
		DefaultNamespace: o.defaultNamespace,
		SkipDirs:         options.SkipDirs,
		Untrusted:        o.untrusted,
		Secrets:          a.console.Secrets(),
	})
	renderer := render.New(ctx, in, options)
	return &reading{in, renderer, clustersOf(renderer), selectors, &common{dirs: directoriesAmong(named), noted: map[string]bool{}}}, nil
}

// build builds all clusters.
func (r *reading) build(ctx context.Context) ([]*render.Result, error) {
	var results []*render.Result
	for _, c := range r.clusters {
		result, err := buildCluster(ctx, c.Cluster)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// buildCluster builds a cluster. It returns an error if that needs more than there may be.
func buildCluster(ctx context.Context, cluster *render.Cluster) (*render.Result, error) {
	result := cluster.Build()
	if err := cluster.Exhausted(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return result, nil
}

func directoriesAmong(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isDir(name) })
}

// newInput makes an input of what was built, and reports nothing. What cannot be used of the files is returned, too.
func (a *app) newInput(ctx context.Context, o *inputOptions, r *reading, of *cluster, rendered *render.Result) (*input, []error, error) {
	set, failures := r.files.Set(rendered.Build)
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("cannot read the input: %w", context.Cause(ctx))
	}
	a.console.ConcealNames(set.Objects())
	inventory := inventory.New(set)
	inventory.Expand(expansionsOf(rendered))
	if o.sameNamespace {
		inventory.DenyCrossNamespace()
	}
	if o.shard.count > 1 {
		inventory.Part(o.shard.has)
	}
	flux, err := o.distribution(set)
	if err != nil {
		return nil, nil, err
	}
	if !o.validating {
		inventory.Refuse(func(obj *manifest.Object) error {
			if obj.Group() == manifest.ImageGroup {
				return nil // it is only read here, in any version
			}
			return flux.refuse(obj)
		})
	}
	if slices.ContainsFunc(set.Objects(), (*manifest.Object).Tainted) { // HelmCharts are called by their releases
		a.console.ConcealNames(inventory.Objects())
	}
	return &input{
		distribution: flux, set: set, cluster: of.shown, called: of.name, begins: of.begins(), rendered: rendered, inventory: inventory, table: reconcile.Kinds(), selectors: r.selectors, namespace: o.namespace, shard: o.shard, validating: o.validating,
		reported: map[*manifest.Object]bool{}, common: r.common,
	}, failures, nil
}

// inputOfBuild makes an input of what was built, and reports what is wrong with that.
func (a *app) inputOfBuild(ctx context.Context, o *inputOptions, r *reading, of *cluster, rendered *render.Result) (*input, error) {
	a.console.In(of.shown)
	in, failures, err := a.newInput(ctx, o, r, of, rendered)
	if err != nil {
		return nil, err
	}
	a.reportRendered(in)
	a.reportLinks(in, r.files.Links())
	for _, skip := range in.set.Skips() {
		a.console.Debug(console.Subject{}, fmt.Sprintf("skipped %s: %s", skip.File, strings.TrimPrefix(skip.Reason, skip.File+":")))
	}
	for _, err := range failures {
		first := in.once(err.Error())
		if !first && (in.validating || in.cluster == "") {
			continue
		}
		a.reportUnreadable(err)
		code := inputCode(err)
		in.code = worst(in.code, code)
		if !first {
			continue
		}
		if code == exitFailed {
			a.unusable++
		}
		if c := validate.Unreadable(err).Code; c == finding.Unreadable || c == finding.Syntax {
			a.unreadable++
		}
	}
	return in, nil
}

// nothingToRead is a command line without a file, unless one was meant.
func nothingToRead(selectors []selector) error {
	e := &usageError{err: errors.New("no manifests to read"), hint: "name files or directories with -f, or - for stdin"}
	for _, s := range selectors {
		switch {
		case exists(s.text):
			e.hint = s.meant()
		case calledManifest(s.text):
			e.err = fmt.Errorf("%s: no such file or directory", s.text)
		}
	}
	return e
}

// inputCode returns the exit code of an object that cannot be used, or of a file that cannot be read.
func inputCode(err error) int {
	var duplicate *manifest.DuplicateError
	var kind *manifest.KindError
	var object *manifest.ObjectError
	if errors.As(err, &duplicate) || errors.As(err, &kind) || errors.As(err, &object) {
		return exitFailed
	}
	return exitUsage
}

// wanted reports whether an object is selected by namespace and arguments, and in the part that the run is about.
func (in *input) wanted(obj *manifest.Object) bool {
	return in.selected(obj) && (in.shard.has(obj) || in.brought[keyOfObject(obj)])
}

// asked reports whether an object of any kind is.
func (in *input) asked(obj *manifest.Object) bool {
	if obj.ReferenceOnly || in.namespace != "" && in.namespace != obj.Namespace {
		return false
	}
	return len(in.selectors) == 0 || slices.ContainsFunc(in.selectors, func(s selector) bool { return s.matches(obj) })
}

// replaceable are the objects that --source may name: those of the input, and the
// sources beside it that the selected charts refer to.
func (in *input) replaceable() []*manifest.Object {
	objects := slices.Clone(in.inventory.Objects())
	for _, obj := range in.inventory.Objects() {
		if !in.wanted(obj) {
			continue
		}
		adm, err := in.inventory.Admit(obj)
		if err != nil {
			continue // reported later
		}
		for _, source := range in.sourcesOf(adm, func(*inventory.RejectedError) {}) {
			if !slices.Contains(objects, source.Object) {
				objects = append(objects, source.Object)
			}
		}
	}
	return objects
}

// check is the usage error for selectors without an object, and for a selection
// that is empty.
func (o *inputOptions) check(ctx context.Context, inputs []*input) error {
	if err := o.checkSelectors(ctx, inputs[0].selectors, inputs...); err != nil {
		return err
	}
	for _, in := range inputs {
		if o.allowEmpty || slices.ContainsFunc(in.inventory.Objects(), in.selected) {
			return nil
		}
		if len(in.selectors) == 0 && in.code == exitFailed && len(in.set.Objects()) == 0 {
			return nil // why there is none was reported
		}
	}
	return o.nothingSelected(ctx, inputs[0])
}

// checkSelectors wants each selector to fit an object of one of the inputs.
func (o *inputOptions) checkSelectors(ctx context.Context, selectors []selector, inputs ...*input) error {
	for _, s := range selectors {
		fits := func(in *input) bool { return slices.ContainsFunc(in.inventory.Objects(), s.matches) }
		if i := slices.IndexFunc(inputs, fits); i >= 0 {
			if err := s.ambiguous(inputs[i].inventory.Objects()); err != nil {
				return err
			}
			continue
		}
		e := &usageError{err: fmt.Errorf("%s: no such object in the input", s.text), hint: s.meant()}
		if slices.ContainsFunc(inputs, func(in *input) bool { return in.code == exitUsage }) {
			e.err = fmt.Errorf("%s: no such object in what could be read of the input", s.text)
		}
		if e.hint == "" {
			e.hint = nearestObject(s, inputs)
		}
		if e.hint == "" {
			e.hint = o.deeper(ctx, inputs[0])
		}
		return e
	}
	return nil
}

// kinds lists which kinds the input holds.
func (in *input) kinds() string {
	counts := map[string]int{}
	var kinds []string
	count := func(kind string, n int) {
		if counts[kind] == 0 {
			kinds = append(kinds, kind)
		}
		counts[kind] += n
	}
	for _, obj := range in.set.Objects() {
		count(obj.Kind, 1)
	}
	for _, s := range in.set.Skipped() {
		count(s.Kind, s.Count)
	}
	if len(kinds) == 0 {
		return "the input holds no Flux objects"
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return "the input holds " + strings.Join(kinds, ", ")
}

// reportLinks warns of links that were not followed.
func (a *app) reportLinks(in *input, links []manifest.Link) {
	for _, link := range links {
		if !in.once("link " + link.Name) {
			continue
		}
		f := validate.New(nil, finding.OutsideLink, link.Text(), "", manifest.Excerpt{Pos: manifest.Pos{File: link.Name}})
		if in.validating {
			in.found = append(in.found, f)
			continue
		}
		a.console.ReportAs(f, console.Presentation{Placed: true, Brief: true})
	}
}

// reportSkipped prints the one line about Flux kinds that are not supported.
func (a *app) reportSkipped(inputs []*input) {
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
func skippedOf(inputs []*input) []manifest.KindCount {
	var all []manifest.KindCount
	for _, in := range inputs {
		for _, s := range in.set.Skipped() {
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
func (a *app) reportFlux1(inputs ...*input) {
	var first *manifest.Object
	count := 0
	for _, in := range inputs {
		for _, obj := range in.set.Objects() {
			if !inventory.IsOperated(obj) || !in.asked(obj) {
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

// targets admits the selected objects, in input order, each with the sources that
// it needs before it where these were not selected themselves. Rejected objects
// are reported and left out.
func (a *app) targets(in *input) []*admission.Admitted {
	chosen := map[*manifest.Object]*admission.Admitted{}
	before := map[*manifest.Object][]*admission.Admitted{} // sources from outside the input, by what brought them
	inInput := map[*manifest.Object]bool{}
	var wanted []*manifest.Object
	for _, obj := range in.inventory.Objects() {
		inInput[obj] = true
		if in.wanted(obj) {
			wanted = append(wanted, obj)
		}
	}
	in.inventory.AdmitAll(wanted)
	for _, obj := range wanted {
		adm, err := in.inventory.Admit(obj)
		if err != nil {
			a.reject(in, obj, err)
			continue
		}
		chosen[obj] = adm
	}
	for _, obj := range wanted {
		if chosen[obj] == nil {
			continue
		}
		for _, source := range in.sourcesOf(chosen[obj], func(r *inventory.RejectedError) { a.rejectSource(in, r) }) {
			if chosen[source.Object] != nil {
				continue
			}
			chosen[source.Object] = source
			if !inInput[source.Object] {
				before[obj] = append(before[obj], source)
			}
		}
	}
	var targets []*admission.Admitted
	for _, obj := range in.inventory.Objects() {
		targets = append(targets, before[obj]...)
		if adm := chosen[obj]; adm != nil {
			targets = append(targets, adm)
		}
	}
	for _, t := range targets {
		if !in.validating {
			a.reportWarnings(in, t)
		}
	}
	a.reportNotes(in)
	return targets
}

// reportNotes names the files beside the input that were used, each once.
func (a *app) reportNotes(in *input) {
	var lines []string
	for _, note := range in.set.Notes() {
		if line := note.String(); in.once(line) {
			lines = append(lines, line)
		}
	}
	// The order in which a run came to need them says nothing.
	slices.Sort(lines)
	for _, line := range lines {
		a.console.Info(console.Subject{}, line)
	}
}

// maxSources bounds the way from an object to where it comes from: a HelmRelease has
// a HelmChart, and that a source.
const maxSources = 4

// sourcesOf lists what an object comes from, the farthest first. A source that is
// missing is reported when the object is reconciled.
func (in *input) sourcesOf(adm *admission.Admitted, rejected func(*inventory.RejectedError)) []*admission.Admitted {
	var sources []*admission.Admitted
	for range maxSources {
		kind, namespace, name, ok := in.table.SourceRef(adm)
		if !ok {
			break
		}
		source, err := in.inventory.Find(kind, namespace, name)
		var refused *inventory.RejectedError
		if errors.As(err, &refused) {
			rejected(refused)
		}
		if err != nil {
			break
		}
		sources = append(sources, source)
		adm = source
	}
	slices.Reverse(sources)
	return sources
}

func subjectOf(obj *manifest.Object) console.Subject {
	return console.Subject{Kind: obj.Kind, Namespace: obj.Namespace, Name: obj.Name}
}
