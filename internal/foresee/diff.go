package foresee

import (
	"bytes"
	"fmt"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/values"
)

// addDiffs adds the unified diffs of values and of the files of charts.
func (f *Foresight) addDiffs(p *plan.Plan) error {
	for i := range p.Changes {
		c, pair := &p.Changes[i], f.matched[i]
		if pair.After == nil || c.Action == plan.Blocked {
			continue
		}
		before, after := f.before.Of(pair.Before), f.after.Of(pair.After)
		text, err := valuesDiff(before, after)
		if err != nil {
			return err
		}
		c.AddDiff("values", text)
		if before == nil || before.Artifact == "" || after.Artifact == "" {
			continue
		}
		if text, err = chartDiff(before, after); err != nil {
			return err
		}
		c.AddDiff("chart", text)
	}
	return nil
}

// valuesDiff returns the diff of two sets of composed values. A changed value of a Secret is shown as changed, without its value.
func valuesDiff(before, after *Release) (string, error) {
	if before != nil && before.Fact.ValuesKey == after.Fact.ValuesKey {
		return "", nil
	}
	differs := func(path []any) bool {
		if before == nil {
			return false
		}
		return !plan.Same(manifest.ValueAt(before.composed, path), manifest.ValueAt(after.composed, path))
	}
	var old []byte
	var err error
	if before != nil {
		if old, err = before.valuesText(differs, "before"); err != nil {
			return "", err
		}
	}
	now, err := after.valuesText(differs, "after")
	if err != nil {
		return "", err
	}
	return plan.Files(map[string][]byte{after.fileName("values.yaml"): old}, map[string][]byte{after.fileName("values.yaml"): now}), nil
}

// valuesText returns composed values as they may be shown; values of Secrets that differ are marked with their side.
func (r *Release) valuesText(differs func(path []any) bool, side string) ([]byte, error) {
	if len(r.composed) == 0 {
		return nil, nil
	}
	origins := r.origins
	if origins == nil {
		origins = &values.Origins{}
	}
	var text bytes.Buffer
	w := values.WriteOptions{
		Hide: func(path []any) string {
			if differs(path) {
				return values.Hidden + " " + side
			}
			return values.Hidden
		},
	}
	showInline(&w, r.Object)
	if err := origins.Write(&text, r.composed, w); err != nil {
		return nil, fmt.Errorf("cannot print the values of %s: %w", r.Object, err)
	}
	return text.Bytes(), nil
}

// chartDiff returns the diff of the files of two charts.
func chartDiff(before, after *Release) (string, error) {
	files := [2]map[string][]byte{}
	for i, r := range []*Release{before, after} {
		read, err := reconcile.ChartFiles(r.Store, r.Artifact)
		if err != nil {
			return "", err
		}
		files[i] = map[string][]byte{}
		for name, data := range read {
			files[i][after.fileName("chart/"+name)] = data
		}
	}
	return plan.Files(files[0], files[1]), nil
}
