package cmd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

func newValidateCommand(a *app) *cobra.Command {
	var o inputOptions
	var reports reportOptions
	var strict bool
	c := &cobra.Command{
		Use:   "validate -f FILE... [[KIND/][NAMESPACE/]NAME...]",
		Short: "Find mistakes in manifests without a network",
		Long: `Judge the objects as the API server would, look for the sources and Secrets that
they refer to and for the keys that these must have, and warn of what is
deprecated or has no effect. No network is used and nothing is written. Directories
are read as Flux would read them: kustomization files and Kustomizations are built,
variables substituted, SOPS Secrets decrypted. A Secret that is not in the input
may be in the cluster: it is a warning, unless a verification rests on it.

Files may also be given as arguments, as pre-commit passes them. Those that are
no manifests are skipped. What they refer to is looked for beside them, and below
the directories given with --lookup-dir.

Every finding has a code, and 'helmsrc explain CODE' says more about it. A comment
silences a code on its line, or on the next one if it stands alone; where an object
begins or is named it holds for the whole object:

  interval: 30s # helmsrc:ignore HS063 a test cluster

Exit codes: 0 nothing worse than warnings, 1 an object has a mistake or, with
--strict, a warning, 2 wrong usage or unreadable input.`,
		Example: `  helmsrc validate -R -f clusters/
  helmsrc validate helmchart.yaml helmrepository.yaml
  helmsrc validate --lookup-dir . apps/podinfo/helmchart.yaml`,
	}
	o.add(c.Flags())
	o.addLookup(c.Flags())
	o.render.addSources(c.Flags())
	reports.add(c.Flags())
	c.Flags().BoolVar(&strict, "strict", false, "fail on warnings; warn of charts that follow every version, and of comments that silence nothing")
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := reports.check(false); err != nil {
			return exitUsage, err
		}
		return a.validate(ctx, &o, &reports, strict, args)
	})
	return c
}

func (a *app) validate(ctx context.Context, o *inputOptions, reports *reportOptions, strict bool, args []string) (int, error) {
	o.validating = true
	in, err := a.readInput(ctx, o, args, "")
	if err != nil {
		return exitUsage, err
	}
	a.tellSkipped(in)
	v := &verdict{strict: strict, invalid: map[subject]bool{}}
	// Nothing to judge is fine: a hook runs on whatever files were changed.
	if err := in.check(true); err != nil {
		a.tellVerdict(v, in)
		a.reportInput(reports, in)
		return exitUsage, err
	}
	targets := a.targets(in)
	for _, adm := range targets {
		in.ignores.Add(adm.Object)
		in.found = append(in.found, in.inventory.Validate(adm)...)
	}
	a.tellNotes(in)
	a.tellVerdict(v, in)
	code := in.code
	if v.failed() {
		code = worst(code, exitFailed)
	}
	a.console.info(subject{}, v.summary(len(targets)+len(in.told), in.unusable))
	if o.exitZero && code != exitUsage {
		code = exitOK
	}
	return a.report(reports, a.newReport(validatedObjects(in, targets, v.objects(in, targets)), in.unusable), nil, code), nil
}

func (a *app) tellVerdict(v *verdict, in *input) {
	v.judge(a.console, in)
	for _, f := range v.told {
		a.console.tell(f)
	}
}

// verdict is what validate makes of the findings.
type verdict struct {
	strict   bool
	told     []finding.Finding // in the order of the input
	invalid  map[subject]bool
	warnings int
	silenced int
}

// judge leaves out what comments silence, and adds the comments that silence
// nothing.
func (v *verdict) judge(c *console, in *input) {
	for _, f := range in.found {
		if c.silenced(&in.ignores, v.raised(f)) {
			v.silenced++
			continue
		}
		v.add(f)
	}
	for _, f := range in.ignores.Findings() {
		v.add(f)
	}
	sortFindings(v.told)
}

// raised is a finding as strict people see it.
func (v *verdict) raised(f finding.Finding) finding.Finding {
	if v.strict && f.Severity == finding.Note {
		f.Severity = finding.Warning
	}
	return f
}

func (v *verdict) add(f finding.Finding) {
	f = v.raised(f)
	switch f.Severity {
	case finding.Error:
		v.invalid[subject{f.Kind, f.Namespace, f.Name}] = true
	case finding.Warning:
		v.warnings++
	}
	v.told = append(v.told, f)
}

// objects are those that have an error. A rejection all of whose causes are silenced
// is none.
func (v *verdict) objects(in *input, targets []*admission.Admitted) map[*manifest.Object]bool {
	invalid := map[*manifest.Object]bool{}
	for _, adm := range targets {
		invalid[adm.Object] = v.invalid[subjectOf(adm.Object)]
	}
	for obj := range in.told {
		if !v.invalid[subjectOf(obj)] {
			delete(in.told, obj)
		}
	}
	return invalid
}

func (v *verdict) failed() bool { return len(v.invalid) > 0 || v.strict && v.warnings > 0 }

// summary counts the objects that were judged, and those that nobody could judge as invalid ones.
func (v *verdict) summary(objects, unusable int) string {
	text := fmt.Sprintf("%d valid, %d invalid, %d warnings", objects-len(v.invalid), len(v.invalid)+unusable, v.warnings)
	if v.warnings == 1 {
		text = strings.TrimSuffix(text, "s")
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
