package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/validate"

	"github.com/helmsrc/helmsrc/internal/session"
)

func newValidateCommand(a *app) *cobra.Command {
	var o inputOptions
	var reports reportOptions
	var strict, unreached, fix bool
	var format otherFormat
	c := &cobra.Command{
		Use:     "validate -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		GroupID: groupManifests,
		Short:   "Find mistakes in manifests without a network",
		Long: `Judge the objects as the API server would, look for the sources and Secrets that
they refer to and for the keys that these must have, and warn of what is
deprecated or has no effect. No network is used and, without --fix, nothing is written. Directories
are read as Flux would read them: kustomization files and Kustomizations are built,
variables substituted, SOPS Secrets decrypted. If they hold several clusters, each
is judged by itself. A Secret that is not in the input
may be in the cluster: it is a warning, unless a verification rests on it.

Files may also be given as arguments, as pre-commit passes them. Those that are
no manifests are skipped. What they refer to is looked for beside them, and below
the directories given with --lookup-dir. If kustomizations below these build the
files, what they make of them is judged, and nothing else.

Every finding has a code, and 'helmsrc explain CODE' says more about it. A comment
silences a code on its line, or on the next one if it stands alone; where an object
begins or is named it holds for the whole object:

  interval: 30s # helmsrc:ignore HS063 a test cluster

--fix edits the files where a mistake has exactly one remedy, and reports the others:
deprecated API versions of kinds whose fields stay, the spelling of a type, a missing
type: oci, the name of a chart or index.yaml in a URL, versions without quotes. Every
other byte stays. Reports as SARIF carry the same edits as fixes.

Exit codes: 0 at most warnings, 1 an object has a mistake or, with
--strict, a warning, 2 wrong usage, nothing to judge or unreadable input, 130
interrupted. Files that are arguments need not hold anything of Flux.`,
		Example: `  helmsrc validate -R -f clusters/
  helmsrc validate helmchart.yaml helmrepository.yaml
  helmsrc validate --lookup-dir . apps/podinfo/helmchart.yaml
  helmsrc validate -R -f clusters/ -o json
  helmsrc validate -R -f clusters/ --fix`,
	}
	o.add(c.Flags())
	o.addLookup(c.Flags())
	o.render.addSources(c.Flags())
	reports.add(c.Flags())
	format.add(c.Flags(), "text", "json", "jsonl")
	c.Flags().BoolVar(&unreached, "unreached", false, "list the files that nothing applies, one a line, and judge nothing")
	c.Flags().BoolVar(&fix, "fix", false, "edit the files, in place, where a mistake has exactly one remedy")
	c.Flags().BoolVar(&strict, "strict", false, "fail on warnings; warn of charts that follow every version, and of comments that silence nothing")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := format.check(); err != nil {
			return exit.Usage, err
		}
		if err := reports.check(format.format != "text"); err != nil {
			return exit.Usage, err
		}
		if unreached {
			return a.listUnreached(ctx, &o, args)
		}
		reports.findings = format.format
		return a.validate(ctx, &o, &reports, strict, fix, args)
	})
	return c
}

func (a *app) validate(ctx context.Context, o *inputOptions, reports *reportOptions, strict, fix bool, args []string) (int, error) {
	o.Validating = true
	inputs, err := a.readClusters(ctx, o, args, "")
	if err != nil {
		return exit.Usage, err
	}
	a.worker.ReportLeftOut(inputs[0])
	a.worker.ReportFlux1(inputs[0])
	a.reportUnreached(inputs[0].Unreached, args)
	v := &verdict{strict: strict, seen: map[string]bool{}}
	for _, in := range inputs {
		v.judged = append(v.judged, &judged{in: in, invalid: map[console.Subject]bool{}, affected: map[console.Subject]bool{}})
	}
	if err := load.CheckSelectors(inputs); err != nil {
		a.reportVerdict(v)
		return exit.Usage, err
	}
	for _, j := range v.judged {
		a.judge(ctx, j)
	}
	v.judge(a.console, &v.judged[0].in.Ignores)
	if fix || reports.machine() {
		a.repair(ctx, v, fix)
	}
	a.console.ReportAlike(finding.Fold(v.reported), console.Presentation{Placed: true})
	if ctx.Err() != nil {
		return exit.Usage, fmt.Errorf("the run is not complete: %w", context.Cause(ctx))
	}
	if err := inputs[0].Options.CheckJudged(inputs); err != nil {
		return exit.Usage, err
	}
	code := exit.OK
	for _, in := range inputs {
		code = exit.Worst(code, in.Code)
	}
	if v.failed() {
		code = exit.Worst(code, exit.Failed)
	}
	objects, n := v.objects()
	n.invalid += a.worker.Unusable // what could not be judged
	a.console.Info(console.Subject{}, v.summary(n, a.worker.Unreadable))
	if o.exitZero && code != exit.Usage {
		code = exit.OK
	}
	return a.report(ctx, reports, a.outlined(reports, a.newReport(objects), inputs, nil), nil, code), nil
}

// judged is one cluster, and what was found in it.
type judged struct {
	in      *load.Input
	targets []*admission.Admitted
	plain   []finding.Finding // of objects that are as they were written: they may be in any cluster
	invalid map[console.Subject]bool

	affected map[console.Subject]bool // objects that refer to invalid ones
}

// judge looks for what is wrong with the objects of a cluster, until the context ends.
func (a *app) judge(ctx context.Context, j *judged) {
	j.targets = a.worker.Targets(j.in)
	for _, adm := range j.targets {
		if ctx.Err() != nil {
			return
		}
		j.in.Ignores.Add(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name, adm.Object.Ignores())
		found := j.in.Replace(adm.Object, validate.Object(j.in.Inventory, adm))
		if adm.Object.Built == "" {
			j.plain = append(j.plain, found...)
		} else {
			j.in.Found = append(j.in.Found, found...)
		}
	}
	j.versioned()
	a.worker.ReportNotes(j.in)
}

// versioned judges the API versions of the objects that take no part in a run.
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

func (a *app) reportVerdict(v *verdict) {
	v.judge(a.console, &v.judged[0].in.Ignores)
	a.console.ReportAlike(finding.Fold(v.reported), console.Presentation{Placed: true})
}

// verdict is what validate makes of the findings.
type verdict struct {
	strict   bool
	judged   []*judged         // by cluster
	held     map[string]int    // how many clusters have a plain object
	seen     map[string]bool   // findings, and whether they are silenced: clusters share files
	reported []finding.Finding // in the order of the input
	errors   int
	warnings int
	silenced int
}

// judge leaves out what comments silence, and adds the comments that silence
// nothing. Of a plain object only what is so in every cluster counts; of all others
// it is said where it is so, if that is not everywhere.
func (v *verdict) judge(c *console.Console, ignores *finding.Ignores) {
	in := v.clusters()
	for _, j := range v.judged {
		for _, f := range j.in.Found {
			if clusters := in[keyOf(f)]; !j.in.Loose && len(clusters) < v.clusterCount() {
				f.Message += " (in " + console.Few(clusters) + ")"
			}
			v.find(c, ignores, j, v.raised(f))
		}
		for _, f := range j.plain {
			if len(in[keyOf(f)]) >= v.holders(f) {
				v.find(c, ignores, j, v.raised(f))
			}
		}
	}
	for _, f := range ignores.Findings() {
		v.report(v.raised(f))
	}
	sortFindings(v.reported)
}

// clusterCount is how many of what was judged are clusters.
func (v *verdict) clusterCount() int {
	count := 0
	for _, j := range v.judged {
		if !j.in.Loose {
			count++
		}
	}
	return count
}

// holders counts the clusters that have the object of a finding.
func (v *verdict) holders(f finding.Finding) int {
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

// inFile is equal for one object of a file.
func inFile(s console.Subject, file string) string {
	return fmt.Sprintf("%s %s/%s %s", s.Kind, s.Namespace, s.Name, file)
}

// clusters are those that each finding is in.
func (v *verdict) clusters() map[string][]string {
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

// keyOf is equal for what is found in several clusters.
func keyOf(f finding.Finding) string {
	return fmt.Sprintf("%s %s %s %s/%s %s", f.Pos, f.Code, f.Kind, f.Namespace, f.Name, f.Message)
}

// find takes up what was found in a cluster, once.
func (v *verdict) find(c *console.Console, ignores *finding.Ignores, j *judged, f finding.Finding) {
	silenced, known := v.seen[keyOf(f)]
	if !known {
		silenced = c.Silenced(ignores, f)
		v.seen[keyOf(f)] = silenced
	}
	switch {
	case silenced && !known:
		v.silenced++
	case !silenced && !known:
		v.report(f)
	}
	switch {
	case silenced || f.Severity != finding.Error:
	case f.BlockedBy != (finding.Object{}):
		j.affected[console.SubjectOf(f)] = true
	default:
		j.invalid[console.SubjectOf(f)] = true
	}
}

// raised is a finding as strict people see it.
func (v *verdict) raised(f finding.Finding) finding.Finding {
	if v.strict && f.Severity == finding.Note {
		f.Severity = finding.Warning
	}
	return f
}

func (v *verdict) report(f finding.Finding) {
	switch f.Severity {
	case finding.Error:
		v.errors++
	case finding.Warning:
		v.warnings++
	}
	v.reported = append(v.reported, f)
}

func (v *verdict) failed() bool { return v.errors > 0 || v.strict && v.warnings > 0 }

// blocked are the objects with findings that are effects of others, each with what it refers to.
func (v *verdict) blocked() map[console.Subject]finding.Object {
	blocked := map[console.Subject]finding.Object{}
	for i, cause := range finding.Causes(v.reported) {
		if f := v.reported[i]; cause != i {
			blocked[console.SubjectOf(f)] = f.BlockedBy
		}
	}
	return blocked
}

// state is what became of an object of a cluster.
func (j *judged) state(obj *manifest.Object, blocked map[console.Subject]finding.Object) (state string, by finding.Object) {
	s := console.ObjectSubject(obj)
	by, ok := blocked[s]
	switch {
	case j.invalid[s], j.affected[s] && !ok:
		return report.StateFailed, finding.Object{}
	case j.affected[s]:
		return report.StateBlocked, by
	}
	return report.StateReady, finding.Object{}
}

// judgedCounts are numbers of documents.
type judgedCounts struct{ valid, invalid, blocked int }

func (n *judgedCounts) add(state string) {
	switch state {
	case report.StateFailed:
		n.invalid++
	case report.StateBlocked:
		n.blocked++
	default:
		n.valid++
	}
}

// objects are those that were judged, in each cluster, and how many documents are valid.
func (v *verdict) objects() (objects []report.Object, n judgedCounts) {
	blocked := v.blocked()
	plain := map[string]int{} // objects that are as they were written: in the first cluster that has them
	for i, j := range v.judged {
		counts := func(obj *manifest.Object) bool {
			key := inFile(console.ObjectSubject(obj), obj.Pos.String())
			if _, known := plain[key]; !known {
				plain[key] = i
			}
			return obj.Built != "" || plain[key] == i
		}
		charts := map[*manifest.Object]string{} // states of HelmCharts, by the HelmReleases that they count with
		for _, adm := range j.targets {
			if !counts(adm.Object) {
				continue
			}
			o := session.NewReportObject(adm.Object)
			o.State, o.BlockedBy = j.state(adm.Object, blocked)
			if o.State == report.StateFailed {
				o.Reason = "Invalid"
			}
			switch {
			case isMadeChart(adm.Object):
				charts[adm.Object.Origin] = o.State
			case o.State == report.StateReady:
				n.add(charts[adm.Object])
			default:
				n.add(o.State)
			}
			objects = append(objects, o)
		}
		for obj := range j.in.Reported {
			state, _ := j.state(obj, blocked)
			if counts(obj) {
				n.add(state)
			}
			// A rejection all of whose causes are silenced does not count.
			if state == report.StateReady || !counts(obj) {
				delete(j.in.Reported, obj)
			}
		}
		objects = append(objects, session.RejectedObjects(j.in)...)
	}
	return objects, n
}

// isMadeChart reports whether an object is the HelmChart of a HelmRelease, which no file holds.
func isMadeChart(obj *manifest.Object) bool {
	return obj.Kind == sourcev1.HelmChartKind && obj.Origin != nil && obj.Origin.Kind == helmv2.HelmReleaseKind
}

func (v *verdict) summary(n judgedCounts, unreadable int) string {
	text := fmt.Sprintf("%d valid, %d invalid, ", n.valid, n.invalid)
	if n.blocked > 0 {
		text += fmt.Sprintf("%d blocked, ", n.blocked)
	}
	text += fmt.Sprintf("%d warnings", v.warnings)
	if v.warnings == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if unreadable > 0 {
		text += fmt.Sprintf(", %d unreadable", unreadable)
	}
	if v.silenced > 0 {
		text += fmt.Sprintf(", %d silenced", v.silenced)
	}
	return text
}

// sortFindings makes the order that of the files, each as it was first met.
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
