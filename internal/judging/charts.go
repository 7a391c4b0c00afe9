package judging

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// treeFile is a chart in the files of a source, or a values file.
type treeFile struct {
	dir, chart, values string
	optional           bool
}

// chart checks a chart and its values files in the files of its source, if these are local.
func (v *Verdict) chart(j *judged, adm *admission.Admitted) []finding.Finding {
	obj, ok := adm.Typed.(*sourcev1.HelmChart)
	if !ok {
		return nil
	}
	ref := obj.Spec.SourceRef
	dir := j.in.Rendered.TreeOf(ref.Kind, obj.Namespace, ref.Name)
	if dir == "" || j.mixed(obj) {
		return nil
	}
	if err := v.lookAt(treeFile{dir: dir, chart: obj.Spec.Chart}); err != nil {
		return validate.Failed(j.in.Inventory, adm, finding.UnknownChart, status.InvalidChartReference.Wrap(err), "spec", "chart")
	}
	for i, name := range chart.EffectiveValuesFiles(obj.Spec.ValuesFiles) {
		f := treeFile{dir: dir, values: name, optional: obj.Spec.IgnoreMissingValuesFiles}
		err := v.lookAt(f)
		if finding.CodeOf(err) == finding.ValuesFiles { // the file is missing: the chart may have a similar one
			f.chart = obj.Spec.Chart
			err = f.read()
		}
		if err != nil {
			return validate.Failed(j.in.Inventory, adm, finding.ValuesFiles, status.ValuesFilesError.Wrap(err), "spec", "valuesFiles", i)
		}
	}
	return nil
}

// mixed reports whether the source of a chart also has files of other repositories.
func (j *judged) mixed(obj *sourcev1.HelmChart) bool {
	source, err := j.in.Inventory.Find(obj.Spec.SourceRef.Kind, obj.Namespace, obj.Spec.SourceRef.Name)
	if err != nil {
		return false
	}
	git, ok := source.Typed.(*sourcev1.GitRepository)
	return ok && (len(git.Spec.Include) > 0 || git.Spec.RecurseSubmodules)
}

// lookAt reads a file once for all objects that need it.
func (v *Verdict) lookAt(f treeFile) error {
	err, known := v.files[f]
	if !known {
		err = f.read()
		v.files[f] = err
	}
	return err
}

func (f treeFile) read() error {
	root, err := file.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	source := chart.Source{Root: root}
	if f.values == "" {
		_, err = source.Find(f.chart)
	} else {
		_, _, err = source.MergeValues(f.chart, []string{f.values}, f.optional)
	}
	return err
}
