package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/rewrite"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// admittedAtOnce is how many objects are admitted between checks of the context.
const admittedAtOnce = 256

// Targets admits the selected objects and their sources, in input order. A source
// from outside the input comes before the first object that needs it. Rejected
// objects are reported and left out. The error is that of the context.
func (l *Reader) Targets(ctx context.Context, in *Input) ([]*admission.Admitted, error) {
	chosen := map[*manifest.Object]*admission.Admitted{}
	before := map[*manifest.Object][]*admission.Admitted{} // sources from outside the input, by dependent object
	inInput := map[*manifest.Object]bool{}
	var wanted []*manifest.Object
	for _, obj := range in.Inventory.Objects() {
		inInput[obj] = true
		if in.Wanted(obj) {
			wanted = append(wanted, obj)
		}
	}
	for part := range slices.Chunk(wanted, admittedAtOnce) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		in.Inventory.AdmitAll(part)
	}
	for _, obj := range wanted {
		adm, err := in.Inventory.Admit(obj)
		if err != nil {
			l.Reject(in, obj, err)
			continue
		}
		chosen[obj] = adm
	}
	for _, obj := range wanted {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if chosen[obj] == nil {
			continue
		}
		for _, source := range in.SourcesOf(chosen[obj], func(r *inventory.RejectedError) { l.rejectSource(in, r) }) {
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
	for _, obj := range in.Inventory.Objects() {
		targets = append(targets, before[obj]...)
		if adm := chosen[obj]; adm != nil {
			targets = append(targets, adm)
		}
	}
	for _, t := range targets {
		if !in.validating {
			l.ReportWarnings(in, t)
		}
	}
	l.ReportNotes(in)
	return targets, nil
}

// ReportNotes prints the used files beside the input, each once.
func (l *Reader) ReportNotes(in *Input) {
	var lines []string
	for _, note := range in.Set.Notes() {
		if line := note.String(); in.Once(line) {
			lines = append(lines, line)
		}
	}
	// The order in which a run used them has no meaning.
	slices.Sort(lines)
	for _, line := range lines {
		l.Console.Info(console.Subject{}, line)
	}
}

// Editable returns the named files that may be edited, so without standard input.
func (o *Options) Editable(ctx context.Context) *rewrite.Found {
	names := slices.DeleteFunc(slices.Concat(o.Names, o.Offered), func(name string) bool { return name == "-" })
	return rewrite.Find(ctx, rewrite.Options{Names: names, Recursive: o.Recursive, Skip: o.SkipDirs})
}

// Editable returns the files that may be edited. It reports files that cannot be read, and returns the exit code for them.
func (l *Reader) Editable(ctx context.Context, o *Options) (*rewrite.Found, int) {
	found, code := o.Editable(ctx), exit.OK
	for _, err := range found.Errors {
		l.ReportEdit(finding.Unreadable, finding.Object{}, err.Error())
		code = exit.Usage
	}
	for _, link := range found.Outside {
		l.Console.Warn(link + ": the link leads out of the repository and is not followed")
	}
	return found, code
}

// ReportEdit reports a finding of an edit about an object, at its position.
func (l *Reader) ReportEdit(code finding.Code, about finding.Object, message string, hints ...string) {
	f := validate.New(nil, code, message, strings.Join(hints, "\n"), manifest.Excerpt{Pos: about.Pos})
	f.Kind, f.Namespace, f.Name = about.Kind, about.Namespace, about.Name
	l.Console.ReportAs(f, console.Presentation{At: console.SubjectOf(f), Placed: true, Brief: true})
}

// WithoutHome leaves out the source of a cluster's own repository if the Secret with its login is only in the cluster, as after
// flux bootstrap: the Secret is not missing. A run that selects this source, or has objects that depend on it, keeps it.
func (l *Reader) WithoutHome(in *Input, targets []*admission.Admitted, o reconcile.Options) []*admission.Admitted {
	if o.MissingSecrets != credential.MissingFail {
		return targets
	}
	needed := map[store.Key]bool{}
	for _, adm := range targets {
		in.need(needed, adm)
	}
	var kept, home []*admission.Admitted
	for _, adm := range targets {
		key := inventory.KeyOf(adm.Object)
		if !validate.Home(adm, in.Set) || needed[key] || o.Directories[key].Path != "" || in.named(adm.Object) {
			kept = append(kept, adm)
			continue
		}
		home = append(home, adm)
	}
	if len(kept) == 0 {
		return targets
	}
	for _, adm := range home {
		line := fmt.Sprintf("%s: left out: the Secret with its login exists only in the cluster, and no selected object depends on the source", adm.Object)
		if in.Once(in.Cluster + line) {
			l.Console.Note(console.Subject{}, line)
		}
	}
	return kept
}

// need records the sources of an object.
func (in *Input) need(needed map[store.Key]bool, adm *admission.Admitted) {
	for _, source := range in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
		needed[inventory.KeyOf(source.Object)] = true
	}
	if generator, ok := adm.Typed.(*swv1.ArtifactGenerator); ok {
		for _, s := range generator.Spec.Sources {
			needed[store.NewKey(s.Kind, cmp.Or(s.Namespace, adm.Object.Namespace), s.Name)] = true
		}
	}
}

func (in *Input) named(obj *manifest.Object) bool {
	return slices.ContainsFunc(in.Selectors, func(s Selector) bool { return s.Matches(obj) })
}
