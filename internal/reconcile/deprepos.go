package reconcile

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// anonymousTimeout bounds what is fetched from a repository that no object
// describes, as source-controller does.
const anonymousTimeout = time.Minute

// place is a repository's URL as the objects of a namespace mean it.
type place struct{ namespace, url string }

// repository is the HelmRepository of a namespace that has a URL, the first by
// name if several have it, or nil.
func (inv *Inventory) repository(namespace, normal string) *admission.Admitted {
	inv.placesOnce.Do(func() { inv.places = inv.repositories() })
	return inv.places[place{namespace, normal}]
}

func (inv *Inventory) repositories() map[place]*admission.Admitted {
	places := map[place]*admission.Admitted{}
	for _, obj := range inv.set.Objects() {
		if obj.Kind != sourcev1.HelmRepositoryKind {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			continue // to a controller it does not exist
		}
		repo := adm.Typed.(*sourcev1.HelmRepository)
		normal, err := fetch.NormalizeURL(repo.Spec.URL)
		if err != nil || isRegistry(normal) != (repo.Spec.Type == sourcev1.HelmRepositoryTypeOCI) {
			continue
		}
		at := place{obj.Namespace, normal}
		if first := places[at]; first == nil || obj.Name < first.Object.Name {
			places[at] = adm
		}
	}
	return places
}

func isRegistry(url string) bool {
	return strings.HasPrefix(url, sourcev1.HelmRepositoryTypeOCI+"://")
}

// anonymousRepository stands for a repository that no object describes. It is
// called by its URL, as no object can be.
func anonymousRepository(normal string) *admission.Admitted {
	repo := &sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{
		URL:      normal,
		Type:     sourcev1.HelmRepositoryTypeDefault,
		Provider: sourcev1.GenericOCIProvider,
		Timeout:  &metav1.Duration{Duration: anonymousTimeout},
	}}
	if isRegistry(normal) {
		repo.Spec.Type = sourcev1.HelmRepositoryTypeOCI
	}
	return &admission.Admitted{Object: &manifest.Object{Kind: sourcev1.HelmRepositoryKind, Name: normal}, Typed: repo}
}

// rememberedIndex is the index that an earlier run stored for a HelmRepository,
// or nil.
func (p *pass) rememberedIndex(ctx context.Context, repo *repository) *indexFile {
	key := keyOf(repo.object)
	record, err := p.r.store.Recall(key)
	if err != nil {
		return nil
	}
	var status sourcev1.HelmRepositoryStatus
	if json.Unmarshal(record.Status, &status) != nil || status.Artifact == nil {
		return nil
	}
	if p.r.store.Verify(status.Artifact.Path, status.Artifact.Digest) != nil {
		return nil
	}
	file, err := p.r.stored.do(ctx, key, func() (*indexFile, error) { return p.r.storedIndexFile(ctx, key, status.Artifact) })
	if err != nil {
		return nil
	}
	return file
}
