package reconcile

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/status"
)

// Kinds are the kinds that helmsrc reconciles.
func Kinds() Table {
	return Table{newHelmRepositoryKind(), newGitRepositoryKind(), newBucketKind(), newOCIRepositoryKind(), newHelmChartKind(), newArtifactGeneratorKind(), newExternalArtifactKind(), newHelmReleaseKind(), newOperatedKind(operator.Group), newOperatedKind(operator.OlderGroup)}
}

func kindOfObject(obj *manifest.Object) (kind, bool) { return Kinds().of(obj) }

// HasNoStatus reports whether an object has no status by design.
func HasNoStatus(obj *manifest.Object) bool {
	k, ok := kindOfObject(obj)
	if !ok {
		return false
	}
	adm, err := admission.Admit(obj)
	return err == nil && k.static(adm.Typed)
}

// chartSources are the kinds of sources that a HelmChart can have. An OCIRepository
// is one of HelmReleases.
func chartSources() []string {
	return []string{sourcev1.HelmRepositoryKind, sourcev1.GitRepositoryKind, sourcev1.BucketKind}
}

// unsupportedSource is for objects that came past admission, which knows the kinds
// of sources.
func unsupportedSource(kind string) error {
	return status.UnsupportedSourceKind.Wrap(fmt.Errorf("unsupported source kind '%s', must be one of: %v", kind, chartSources()))
}
