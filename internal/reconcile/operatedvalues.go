package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/values"
)

// Composed are values with where they come from.
type Composed struct {
	Values  map[string]any
	Origins *values.Origins
}

// Composed are the values of a HelmRelease of Flux 1, which may come from its chart or from a URL: without those of Secrets that may be
// missing and are. It is nil for other objects, and where the values could not be composed.
func (r *Result) Composed() *Composed { return r.composed }

// readers read values of the release that stand in no manifest.
func (p *operatedReconciliation) readers(ctx context.Context) inventory.OperatedReaders {
	return inventory.OperatedReaders{
		URL:       func(url string) ([]byte, error) { return p.r.valuesAt(ctx, url) },
		ChartFile: func(name string) ([]byte, error) { return p.chartFile(ctx, name) },
	}
}

// errRepositoryFile is the operator's: it joins the path to that of the archive.
var errRepositoryFile = errors.New("a chart of a repository has no directory")

// chartFile reads a file of values below the directory of a chart of a Git repository. It may lie outside of the chart, but not of
// the repository.
func (p *operatedReconciliation) chartFile(ctx context.Context, name string) ([]byte, error) {
	data, err := p.readChartFile(ctx, name)
	if err != nil {
		return nil, finding.WithCode(finding.InvalidValues, fmt.Errorf("unable to read value file from path %s: %w", name, err))
	}
	return data, nil
}

func (p *operatedReconciliation) readChartFile(ctx context.Context, name string) ([]byte, error) {
	if p.hr.Spec.Chart.Source() != operator.GitSource {
		return nil, errRepositoryFile
	}
	made, err := p.r.inventory.OperatedChart(p.adm.Object)
	if err != nil {
		return nil, err
	}
	obj := made.Typed.(*sourcev1.HelmChart)
	adm, err := p.r.inventory.Find(obj.Spec.SourceRef.Kind, obj.Namespace, obj.Spec.SourceRef.Name)
	if err != nil {
		return nil, err
	}
	from, err := p.r.result(ctx, adm).Source().tree(ctx)
	if err != nil {
		return nil, err
	}
	root, err := from.files(ctx)
	if err != nil {
		return nil, err
	}
	return chart.Source{Root: root, Filter: from.filter, Limits: p.r.limits}.ReadFile(path.Clean(obj.Spec.Chart) + "/" + name)
}

// valuesTimeout bounds what is fetched from a URL that values come from: the operator has no limit.
const valuesTimeout = time.Minute

func (r *Reconciler) valuesAt(ctx context.Context, url string) ([]byte, error) {
	data, err := r.valueFiles.Do(ctx, url, func() ([]byte, error) {
		limit := cmp.Or(r.limits.File, maxValuesFile)
		tooLarge := fetch.NewSizeError(fmt.Sprintf("it is larger than the maximum chart file size of %d bytes", limit))
		var body sinkBuffer
		err := helmrepo.File(ctx, r.client, url, valuesTimeout, &body, limit, tooLarge)
		return body.Bytes(), err
	})
	if err != nil {
		return nil, &finding.Problem{ // the operator has no other words for it
			Code: finding.MissingValues, Text: "unable to read value file from URL " + auth.RedactURL(url), Advice: auth.RedactText(err.Error()), Err: err,
		}
	}
	return data, nil
}

// maxValuesFile is the limit where none is set.
const maxValuesFile = 5 << 20

type sinkBuffer struct{ bytes.Buffer }

// Reset forgets the beginning of a download that is tried again.
func (b *sinkBuffer) Reset() error {
	b.Buffer.Reset()
	return nil
}
