// Package judging checks the objects of all clusters, without a network, and fixes mistakes that have exactly one remedy.
package judging

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// judged is a cluster with its findings.
type judged struct {
	in      *load.Input
	targets []*admission.Admitted
	plain   []finding.Finding // of unchanged objects: they may be in any cluster
	invalid map[console.Subject]bool

	affected map[console.Subject]bool // objects that refer to invalid ones
}

// judgeObjects checks the objects of a cluster, until the context ends.
func (v *Verdict) judgeObjects(ctx context.Context, j *judged) {
	var err error
	if j.targets, err = v.w.Targets(ctx, j.in); err != nil {
		return
	}
	for _, adm := range j.targets {
		if ctx.Err() != nil {
			return
		}
		j.in.Ignores.Add(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name, adm.Object.Ignores())
		found := j.in.Replace(adm.Object, append(validate.Object(j.in.Inventory, adm), v.chart(j, adm)...))
		if adm.Object.Built == "" {
			j.plain = append(j.plain, found...)
		} else {
			j.in.Found = append(j.in.Found, found...)
		}
	}
	j.versioned()
	v.w.ReportNotes(j.in)
}

// versioned checks the API versions of the objects that are not part of a run.
func (j *judged) versioned() {
	for _, o := range j.in.Set.Versioned() {
		if !j.in.Asked(o) {
			continue
		}
		f, ok := j.in.Distribution.Judge(o)
		if !ok {
			continue
		}
		j.in.Ignores.Add(o.Kind, o.Namespace, o.Name, o.Ignores())
		if f.Code == finding.RemovedVersion {
			j.in.Reported[o] = true
		}
		if o.Built == "" {
			j.plain = append(j.plain, f)
		} else {
			j.in.Found = append(j.in.Found, f)
		}
	}
}

// Options configure how the findings are judged.
type Options struct {
	Strict   bool // warnings fail, and notes are warnings
	Remedies bool // findings get their edit, if there is exactly one
}

// A Verdict is the result of the findings in all clusters.
type Verdict struct {
	w        *session.Worker
	o        Options
	judged   []*judged         // by cluster
	held     map[string]int    // number of clusters that have an unchanged object
	seen     map[string]bool   // findings, and whether they are silenced: clusters share files
	reported []finding.Finding // in the order of the input
	errors   int
	warnings int
	silenced []finding.Finding
	files    map[treeFile]error // errors of charts and values files

	Code    int             // without failures that an option may forgive
	Objects []report.Object // for reports
	Summary string
}

// newVerdict judges the objects of inputs.
func newVerdict(ctx context.Context, w *session.Worker, inputs []*load.Input, o Options) *Verdict {
	v := &Verdict{w: w, o: o, seen: map[string]bool{}, files: map[treeFile]error{}}
	wrong := load.CheckSelectors(inputs) != nil
	for _, in := range inputs {
		j := &judged{in: in, invalid: map[console.Subject]bool{}, affected: map[console.Subject]bool{}}
		v.judged = append(v.judged, j)
		if !wrong {
			v.judgeObjects(ctx, j)
		}
	}
	v.judge()
	return v
}

// Judge judges the objects of inputs, and reports the findings. It returns an error if the context ends, a selector matches no
// object, or there is nothing to judge.
func Judge(ctx context.Context, w *session.Worker, inputs []*load.Input, o Options) (*Verdict, error) {
	v := newVerdict(ctx, w, inputs, o)
	wrong := load.CheckSelectors(inputs)
	if wrong == nil && o.Remedies {
		v.repair(ctx)
	}
	if ctx.Err() == nil { // an interrupted run has judged only a part
		w.Console.ReportByCause(finding.Fold(v.reported), console.Presentation{Placed: true})
	}
	switch {
	case wrong != nil:
		return nil, wrong
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the run is not complete: %w", context.Cause(ctx))
	}
	if err := inputs[0].Options.CheckJudged(inputs); err != nil {
		return nil, err
	}
	for _, in := range inputs {
		v.Code = exit.Worst(v.Code, in.Code)
	}
	if v.failed() {
		v.Code = exit.Worst(v.Code, exit.Failed)
	}
	var n judgedCounts
	v.Objects, n = v.objects()
	n.invalid += w.Unusable // documents that could not be judged
	v.Summary = v.summary(n)
	return v, nil
}

// judge leaves out silenced findings, and adds findings about comments that silence
// nothing. A finding of an unchanged object counts only if all clusters with the object have it.
// Other findings name their clusters, unless all clusters have them.
func (v *Verdict) judge() {
	in, ignores := v.clusters(), &v.judged[0].in.Ignores
	type judgedFinding struct {
		finding.Finding
		in *judged
	}
	var all []judgedFinding
	for _, j := range v.judged {
		for _, f := range j.in.Found {
			if clusters := in[keyOf(f)]; !j.in.Loose && len(clusters) < v.clusterCount() {
				f.Message, f.Clusters = f.Message+" (in "+console.Few(clusters)+")", clusters
			}
			all = append(all, judgedFinding{f, j})
		}
		for _, f := range j.plain {
			if len(in[keyOf(f)]) >= v.holders(f) {
				all = append(all, judgedFinding{f, j})
			}
		}
	}
	for _, f := range all {
		if f.Code == finding.DependencyCycle {
			ignores.Silences(f.Finding) // a comment at any member counts for all of them
		}
	}
	for _, f := range all {
		v.find(ignores, f.in, v.raised(f.Finding))
	}
	for _, f := range ignores.Findings() {
		v.report(v.raised(f))
	}
	sortFindings(v.reported)
}

// clusterCount returns the number of judged inputs that are clusters.
func (v *Verdict) clusterCount() int {
	count := 0
	for _, j := range v.judged {
		if !j.in.Loose {
			count++
		}
	}
	return count
}

// holders counts the clusters that have the object of a finding.
func (v *Verdict) holders(f finding.Finding) int {
	if v.held == nil {
		v.held = map[string]int{}
		for _, j := range v.judged {
			for _, adm := range j.targets {
				v.held[inFile(console.ObjectSubject(adm.Object), adm.Object.Pos.File)]++
			}
			for obj := range j.in.Reported {
				v.held[inFile(console.ObjectSubject(obj), obj.Pos.File)]++
			}
		}
	}
	return v.held[inFile(console.SubjectOf(f), f.Pos.File)]
}

// inFile returns a key that is equal for an object of a file.
func inFile(s console.Subject, file string) string {
	return fmt.Sprintf("%s %s/%s %s", s.Kind, s.Namespace, s.Name, file)
}

// clusters returns the clusters of each finding.
func (v *Verdict) clusters() map[string][]string {
	clusters := map[string][]string{}
	for _, j := range v.judged {
		name := j.in.Cluster
		for _, f := range slices.Concat(j.in.Found, j.plain) {
			if key := keyOf(f); !slices.Contains(clusters[key], name) {
				clusters[key] = append(clusters[key], name)
			}
		}
	}
	return clusters
}

// keyOf returns a key that is equal for a finding in several clusters.
func keyOf(f finding.Finding) string {
	return fmt.Sprintf("%s %s %s %s/%s %s", f.Pos, f.Code, f.Kind, f.Namespace, f.Name, f.Message)
}

// find adds a finding of a cluster, once.
func (v *Verdict) find(ignores *finding.Ignores, j *judged, f finding.Finding) {
	silenced, known := v.seen[keyOf(f)]
	if !known {
		silenced = v.w.Console.Silenced(ignores, f)
		v.seen[keyOf(f)] = silenced
	}
	switch {
	case silenced && !known:
		v.silenced = append(v.silenced, f)
	case !silenced && !known:
		v.report(f)
	}
	switch {
	case silenced || f.Severity != finding.Error:
	case f.BlockedBy != (finding.Object{}), f.Code == finding.DependencyCycle: // the first member of a cycle fails
		j.affected[console.SubjectOf(f)] = true
	default:
		j.invalid[console.SubjectOf(f)] = true
	}
}

// raised returns a finding with the severity of strict mode.
func (v *Verdict) raised(f finding.Finding) finding.Finding {
	if v.o.Strict && f.Severity == finding.Note {
		f.Severity = finding.Warning
	}
	return f
}

func (v *Verdict) report(f finding.Finding) {
	switch f.Severity {
	case finding.Error:
		v.errors++
	case finding.Warning:
		v.warnings++
	}
	v.reported = append(v.reported, f)
}

func (v *Verdict) failed() bool { return v.errors > 0 || v.o.Strict && v.warnings > 0 }

// sortFindings sorts by file, in the order of the first finding of each file, then by line and column.
func sortFindings(found []finding.Finding) {
	files := map[string]int{}
	for _, f := range found {
		if _, ok := files[f.Pos.File]; !ok {
			files[f.Pos.File] = len(files)
		}
	}
	slices.SortStableFunc(found, func(a, b finding.Finding) int {
		return cmp.Or(
			cmp.Compare(files[a.Pos.File], files[b.Pos.File]),
			cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
}
