package migration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
	"github.com/helmsrc/helmsrc/internal/store"
)

// operatedChart is the chart of a HelmRelease of Flux 1, before the migration.
type operatedChart struct {
	digest, text string // digest of its files; the error without a chart
	code         int
}

// operated fetches the charts of the HelmReleases of Flux 1 that are to be migrated.
func (m *Migration) operated(ctx context.Context, s *sides) (map[migrate.ID]*operatedChart, error) {
	charts := map[migrate.ID]*operatedChart{}
	for _, in := range m.inputs {
		owners := map[*manifest.Object]migrate.ID{}
		var objects []*manifest.Object
		for _, obj := range in.Inventory.Objects() {
			if obj.Kind != sourcev1.HelmChartKind || obj.Origin == nil {
				continue
			}
			id := migrate.ID{Kind: "HelmRelease", Namespace: obj.Origin.Namespace, Name: obj.Origin.Name}
			if m.ofFlux1(obj.Origin, id) {
				owners[obj] = id
				objects = append(objects, obj)
			}
		}
		if len(owners) == 0 {
			continue
		}
		st, err := m.Shared.Temporary()
		if err != nil {
			return nil, err
		}
		results, err := s.before.Results(ctx, in, objects, st, false)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			id, ok := owners[r.Object.Object]
			if !ok {
				continue
			}
			found := &operatedChart{code: session.CodeOf(r), text: r.Message()}
			if artifact := r.Artifact(); found.code == exit.OK && artifact != nil {
				found.digest = digestWithoutVersion(st, artifact.Path)
			}
			charts[id] = found
		}
	}
	return charts, nil
}

// ofFlux1 reports whether an object is a HelmRelease of Flux 1 that is to be migrated.
func (m *Migration) ofFlux1(o *manifest.Object, id migrate.ID) bool {
	return !strings.HasSuffix(o.Group(), "toolkit.fluxcd.io") && slices.Contains(m.result.Operated, id)
}

// compareOperated compares the chart of a release that was of Flux 1.
func (s *sides) compareOperated(after *foresee.Release, charts map[migrate.ID]*operatedChart) proven {
	found := proven{cluster: after.In.Cluster, id: idOf(after.Object), pos: after.Object.Pos, is: unknown, code: s.after.CodeOf(after.Fact.ID)}
	before := charts[found.id]
	known := before != nil && before.digest != ""
	switch {
	case after.Fact.Blocked != "":
		found.text = after.Fact.Blocked
		if known && found.code != exit.Transient {
			found.is = differs
		}
	case known && after.Artifact != "":
		chart, now := after.Fact.Chart, digestWithoutVersion(after.Store, after.Artifact)
		found.is, found.text = same, fmt.Sprintf("the same chart before and after: %s %s (%s)", chart.Name, chart.Version, cmp.Or(chart.Digest, now))
		if now != before.digest {
			found.is = differs
			found.text = fmt.Sprintf("its chart would be %s %s (%s), not the operator's (%s)", chart.Name, chart.Version, digest.Short(now), digest.Short(before.digest))
		}
	case before == nil:
		found.text = "the chart of the HelmRelease of Flux 1 is not known here"
	default:
		found.text, found.code = before.text, before.code
	}
	return found
}

// digestWithoutVersion returns a digest that is equal for charts whose files are equal, except for the version: in Flux 2, the
// version of a chart from Git gets the commit, so that each commit is an upgrade, as for the operator. It returns "" on errors.
func digestWithoutVersion(st *store.Store, artifact string) string {
	files, err := reconcile.ChartFiles(st, artifact)
	var about map[string]any
	if err == nil {
		err = yaml.Unmarshal(files["Chart.yaml"], &about)
	}
	delete(about, "version")
	if err == nil {
		files["Chart.yaml"], err = yaml.Marshal(about)
	}
	if err != nil {
		return ""
	}
	return foresee.DigestOf(files)
}
