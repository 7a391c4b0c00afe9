package foresee

import (
	"context"
	"fmt"
	"io"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/validate"
	"github.com/helmsrc/helmsrc/internal/values"
)

// Values writes the values of the selected HelmRelease in each cluster, and returns the exit code. It fetches values that are not
// in manifests.
func (w Work) Values(ctx context.Context, to io.Writer, o values.WriteOptions) (int, error) {
	w.Worker.Console.Postpone()
	inputs, err := w.Worker.Inputs(ctx, w.Options.Load)
	if err != nil {
		return exit.Usage, err
	}
	inputs = load.WithoutLoose(inputs)
	w.Worker.ReportFlux1(inputs...)
	if err := load.CheckSelectors(inputs); err != nil {
		return exit.CodeOf(err), err
	}
	code, found := exit.OK, false
	err = w.Worker.Each(inputs, func(in *load.Input) error {
		release, err := w.oneRelease(in)
		code = exit.Worst(code, in.Code)
		if release == nil || err != nil {
			found = found || err == nil && len(releasesOf(in)) > 0
			return err
		}
		if in.Cluster != "" {
			between := ""
			if found {
				between = "---\n"
			}
			if _, err := fmt.Fprintf(to, "%s# Cluster: %s\n", between, in.Cluster); err != nil {
				return err
			}
		}
		found = true
		printed, err := w.releaseValues(ctx, to, o, in, release)
		code = exit.Worst(code, printed)
		return err
	})
	w.Worker.Console.Unite()
	if err == nil && !found {
		err = &exit.UsageError{Err: fmt.Errorf("no HelmRelease is selected: %s", inputs[0].Kinds())}
	}
	if err != nil {
		code = exit.Worst(code, exit.CodeOf(err))
	}
	return code, err
}

// releaseValues writes the values of one release, and returns the exit code.
func (w Work) releaseValues(ctx context.Context, to io.Writer, o values.WriteOptions, in *load.Input, release *admission.Admitted) (int, error) {
	composed, origins, code, err := w.composed(ctx, in, release)
	if origins == nil || err != nil {
		return code, err
	}
	showInline(&o, release.Object)
	if err := origins.Write(to, composed, o); err != nil {
		return exit.Failed, fmt.Errorf("cannot print the values of %s: %w", release.Object, err)
	}
	return code, nil
}

// composed returns the values of a release with their origins, nil if they cannot be composed. It reports errors and returns the
// exit code.
func (w Work) composed(ctx context.Context, in *load.Input, release *admission.Admitted) (map[string]any, *values.Origins, int, error) {
	if hr, ok := release.Typed.(*operator.HelmRelease); ok && validate.Unread(hr) {
		return w.fetchedValues(ctx, in, release, hr)
	}
	composed, origins, found := validate.Values(in.Inventory, release)
	code := in.Code
	for _, f := range found {
		w.Worker.Console.Report(f)
		if f.Severity == finding.Error {
			code = exit.Worst(code, exit.Failed)
		}
	}
	w.Worker.ReportNotes(in)
	if code == exit.Failed {
		origins = nil
	}
	return composed, origins, code, nil
}

// fetchedValues returns values that are not in manifests.
func (w Work) fetchedValues(ctx context.Context, in *load.Input, release *admission.Admitted, hr *operator.HelmRelease) (map[string]any, *values.Origins, int, error) {
	var err error
	if w.Shared, err = w.Worker.Open(ctx, w.Options); err != nil {
		return nil, nil, exit.Usage, err
	}
	defer w.Shared.Close()
	side := &Side{Work: w, codes: map[plan.ID]int{}, Inputs: []*load.Input{in}}
	defer side.Close()
	if side.replaced, err = w.Worker.Replace(w.Options, side.Inputs, nil); err != nil {
		return nil, nil, exit.Usage, err
	}
	r := newRelease(in, release.Object, "")
	r.operated, r.unread = hr, true
	if err := side.run(ctx, in, []*Release{r}, true); err != nil {
		return nil, nil, max(exit.Usage, exit.CodeOf(err)), err
	}
	w.Worker.ReportNotes(in)
	if r.Fact.Blocked != "" {
		return nil, nil, exit.Worst(in.Code, side.codes[r.Fact.ID]), nil
	}
	return r.composed, r.origins, in.Code, nil
}

// releasesOf returns the selected HelmReleases.
func releasesOf(in *load.Input) []*manifest.Object {
	return slices.DeleteFunc(slices.Clone(in.Inventory.Objects()), func(obj *manifest.Object) bool {
		return manifest.BareKind(obj.Kind) != helmv2.HelmReleaseKind || !in.Wanted(obj)
	})
}

// oneRelease returns the HelmRelease of a cluster that the arguments select, nil if they select no release or a rejected one.
func (w Work) oneRelease(in *load.Input) (*admission.Admitted, error) {
	releases := releasesOf(in)
	switch len(releases) {
	case 0:
		return nil, nil
	case 1:
	default:
		var names []string
		for _, obj := range releases {
			_, namespace, name := obj.Called()
			names = append(names, namespace+"/"+name)
		}
		return nil, &exit.UsageError{
			Err:    fmt.Errorf("%d HelmReleases are selected: %s", len(releases), console.Few(names)),
			Advice: finding.NameRelease,
		}
	}
	adm, err := in.Inventory.Admit(releases[0])
	if err != nil {
		w.Worker.Reject(in, releases[0], err)
		return nil, nil
	}
	w.Worker.ReportWarnings(in, adm)
	return adm, nil
}

// showInline hides values and keys that came from Secrets in the inline values of a release.
func showInline(o *values.WriteOptions, obj *manifest.Object) {
	spec, _ := obj.Content["spec"].(map[string]any)
	document := map[string]any{"spec": map[string]any{"values": spec["values"]}}
	shown, _ := obj.Conceal(document).(map[string]any)
	o.Inline = manifest.At[map[string]any](shown, "spec", "values")
	o.Key = func(path []any, name string) string {
		here := func(all any) (is, has bool) {
			m, is := manifest.ValueAt(all, path).(map[string]any)
			_, has = m[name]
			return is, has
		}
		if text := obj.Secrets.Text(name); text != name {
			return text
		}
		if _, written := here(spec["values"]); written {
			if is, same := here(o.Inline); is && !same {
				return values.Hidden
			}
		}
		return name
	}
}
