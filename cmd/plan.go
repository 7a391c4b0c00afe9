package cmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/publish"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/table"
)

// planOptions are the flags of plan.
type planOptions struct {
	foresee.Options
	run          runOptions
	format       formatFlag
	render       bool
	helm         helmOptions
	failOnChange bool
}

func newPlanCommand(a *app) *cobra.Command {
	o := &planOptions{format: formatFlag{format: tableFormat, formats: []string{tableFormat, "wide", "json", "jsonl", "markdown"}, templates: true}}
	c := &cobra.Command{
		GroupID: groupCharts,
		Use:     "plan -f FILE... [[HelmRelease/][NAMESPACE/]NAME...]",
		Short:   "Show what would happen to each HelmRelease, and why",
		Long: `Compare the manifests with an earlier state, and report what helm-controller would do
with each HelmRelease: install, upgrade, none, uninstall or blocked. The decision is made
as in helm-controller, from the name and namespaces of the Helm release, the name and
version of the chart, the digest of the composed values, post renderers and common
metadata; for HelmReleases of Flux 1, as in the Helm Operator. Nothing is written.

--against is a revision of the Git repository that contains the manifests (main, HEAD~1,
v1.2.0; git need not be installed), or a directory: either a copy of the repository, in
which the paths of -f are looked up, or the manifests themselves. With a revision, a file
given as an argument is compared in each cluster of its repository, or of --lookup-dir,
that uses it. Without --against, the manifests are compared with what the last fetch
recorded in the artifacts directory. --against may also be a lock file: its
charts are compared with those that the manifests resolve to without it.

Only charts that may differ are looked up: in Helm repositories as resolve does, in other
sources as fetch does. --diff fetches them, and prints unified diffs of the values and of
the charts' files. --render prints unified diffs of the objects that would be installed or
upgraded, rendered as by template, after a summary of deleted data, added, changed and
removed objects, images and CRDs. For a value from a Secret, only the fact that it changed
is shown. The state of the cluster is not known: failed or pending releases, manual changes
and drift are not taken into account.

Exit codes: 0 no release is blocked, 1 a HelmRelease is blocked, 2 wrong usage,
unreadable input on either side, or helm is not installed, 3 a digest or signature check
failed, 4 with --exit-code, a release would change, 5 only failures that may pass on a
retry.`,
		Example: `  helmsrc plan -R -f clusters/production --against HEAD~1
  helmsrc plan helmrelease.yaml --against HEAD~1
  helmsrc plan -f helmrelease.yaml
  helmsrc plan -f helmrelease.yaml --against HEAD~1 --diff -o markdown`,
	}
	fs := c.Flags()
	fs.StringVar(&o.Against, "against", "", "state to compare with: a Git `revision`, a directory, or a lock file (default: the state that the last fetch recorded)")
	fs.BoolVar(&o.Diff, "diff", false, "print unified diffs of the values, and of the files of charts")
	fs.BoolVar(&o.render, "render", false, "print unified diffs of the objects that would be installed or upgraded, rendered with the installed helm")
	fs.BoolVar(&o.Strip, "strip", true, "leave out of --render the metadata that every new version changes: the labels helm.sh/chart and app.kubernetes.io/version, and checksums")
	o.helm.add(fs)
	addExitCode(fs, &o.failOnChange, "anything would happen to a HelmRelease", "fail-on-change")
	o.format.add(a, c)
	o.run.input.add(fs)
	o.run.input.addLookup(fs)
	o.run.report.add(fs)
	o.run.store.addDir(fs)
	o.run.addFetch(fs)
	addLocked(&o.run.Lock, fs)
	addFrom(&o.run.Lock, fs)
	o.run.addTrust(fs)
	c.RunE = a.runner(func(ctx context.Context, args []string) (int, error) {
		if err := cmp.Or(o.helm.check(), o.run.begin(a, args)); err != nil {
			return exit.Usage, err
		}
		return a.plan(ctx, o)
	})
	return c
}

func (a *app) plan(ctx context.Context, o *planOptions) (int, error) {
	a.worker.Purpose.Foresees = true
	// A Secret that exists only in the cluster is no obstacle: its values are the same on both sides.
	if o.run.Reconcile.MissingSecrets == credential.MissingFail {
		o.run.Reconcile.MissingSecrets = credential.MissingAnonymous
	}
	ctx, cancel := o.run.deadline(ctx)
	defer cancel()
	if o.render {
		var err error
		o.helm.Closed = o.run.input.Untrusted || o.run.Reconcile.Offline
		if o.Renderer, err = foresee.NewRenderer(ctx, &a.worker, &o.helm.HelmOptions); err != nil {
			return session.UsageCode(err), err
		}
		defer o.Renderer.Close()
	}
	shared, err := a.worker.Open(ctx, &o.run.Options)
	if err != nil {
		return exit.Usage, err
	}
	defer shared.Close()
	f, err := foresee.Foresee(ctx, foresee.Work{Worker: &a.worker, Shared: shared, Options: &o.run.Options}, o.Options)
	if err != nil {
		return max(exit.Usage, exit.CodeOf(err)), err
	}
	defer f.Close()
	p, err := f.Plan(ctx)
	if err != nil {
		return exit.CodeOf(err), err
	}
	printed := o.print(a, p)
	code := f.Code(p)
	if o.failOnChange && p.Changed() {
		code = exit.Worst(code, exit.Drift)
	}
	a.sum(p.Summary())
	run := a.worker.Report(f.Objects(p))
	run.Plan = p
	a.outlined(&o.run.report, run, f.Inputs(), nil)
	return a.conclude(ctx, &o.run, run, planOutputs(p), code, printed)
}

// planOutputs returns the outputs of a step of GitHub Actions for a plan.
func planOutputs(p *plan.Plan) []publish.Output {
	outputs := []publish.Output{{Name: "plan-changed", Value: strconv.FormatBool(p.Changed())}}
	for _, action := range plan.Actions() {
		outputs = append(outputs, publish.Output{Name: "plan-" + string(action), Value: fmt.Sprint(p.Count(action))})
	}
	return outputs
}

func (o *planOptions) print(a *app, p *plan.Plan) error {
	if template, err := status.ParseTemplate(o.format.format); template != nil || err != nil {
		var b bytes.Buffer
		if err = cmp.Or(err, report.WritePlan(&b, p)); err != nil {
			return err
		}
		return template.Execute(a.env.Stdout, json.RawMessage(b.Bytes()))
	}
	switch o.format.format {
	case "json":
		return report.WritePlan(a.env.Stdout, p)
	case "jsonl":
		return report.EncodeLines(a.env.Stdout, p.Changes)
	case "markdown":
		_, err := fmt.Fprint(a.env.Stdout, report.PlanMarkdown(p))
		return err
	}
	return tabulatePlan(a.env.Stdout, a.paper, p, o.format.format == "wide")
}

// shownName returns the name of a HelmRelease, with the kind if it is one of Flux 1.
func shownName(c *plan.Change) string {
	if c.Kind == "" {
		return c.Name
	}
	return strings.ToLower(c.Kind) + "/" + c.Name
}

// releaseName returns the name of a HelmRelease with its namespace, and with the kind if it is one of Flux 1.
func releaseName(c *plan.Change) string {
	return strings.TrimSuffix(shownName(c), c.Name) + c.Namespace + "/" + c.Name
}

func tabulatePlan(w io.Writer, paper table.Style, p *plan.Plan, wide bool) error {
	if len(p.Changes) == 0 {
		return nil
	}
	clusters := slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return c.Cluster != "" })
	header := []string{"RELEASE", "ACTION", "CHART", "REASON"}
	if wide {
		header = []string{"NAMESPACE", "NAME", "ACTION", "CHART", "RELEASE", "VALUES", "FILE", "REASON"}
	}
	if clusters {
		header = append([]string{"CLUSTER"}, header...)
	}
	var rows [][]string
	for i := range p.Changes {
		c := &p.Changes[i]
		row := []string{releaseName(c), string(c.Action), table.OrNone(report.PlanChart(c))}
		if wide {
			row = append([]string{c.Namespace, shownName(c)}, row[1:]...)
			row = append(row, c.Release.Namespace+"/"+c.Release.Name, table.OrNone(c.ValuesAfter), table.OrNone(c.File))
		}
		row = append(row, console.OneLine(strings.Join(c.ShortTexts(), "; ")))
		if clusters {
			row = append([]string{c.Cluster}, row...)
		}
		rows = append(rows, row)
	}
	paper.Wrap = true // the reasons are the content of a plan
	if wide {
		paper.Columns = 0
	}
	if err := paper.Write(w, header, rows, actionColor); err != nil {
		return err
	}
	if texts := p.ManifestTexts(); len(texts) > 0 {
		if _, err := fmt.Fprint(w, "\n"); err != nil {
			return err
		}
		for _, text := range texts {
			if _, err := fmt.Fprintln(w, console.OneLine(text)); err != nil {
				return err
			}
		}
	}
	for i := range p.Changes {
		for _, d := range p.Changes[i].Diffs {
			if _, err := fmt.Fprint(w, "\n", paper.PaintDiff(d.Text)); err != nil {
				return err
			}
		}
	}
	return nil
}

func actionColor(title, cell string) table.Color {
	if title != "ACTION" {
		return table.Plain
	}
	return map[string]table.Color{
		string(plan.Install): table.Green, string(plan.Upgrade): table.Cyan, string(plan.Uninstall): table.Yellow, string(plan.Blocked): table.Red,
	}[cell]
}
