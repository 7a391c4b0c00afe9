package inventory

import (
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// namespacedURL is a repository's URL as the objects of a namespace mean it.
type namespacedURL struct{ namespace, url string }

// Repository is the HelmRepository of a namespace that has a URL, the first by
// name if several have it, or nil.
func (inv *Inventory) Repository(namespace, normal string) *admission.Admitted {
	inv.placesOnce.Do(func() { inv.places = inv.repositories() })
	return inv.places[namespacedURL{namespace, normal}]
}

func (inv *Inventory) repositories() map[namespacedURL]*admission.Admitted {
	places := map[namespacedURL]*admission.Admitted{}
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
		if err != nil || IsRegistryURL(normal) != (repo.Spec.Type == sourcev1.HelmRepositoryTypeOCI) {
			continue
		}
		at := namespacedURL{obj.Namespace, normal}
		if first := places[at]; first == nil || obj.Name < first.Object.Name {
			places[at] = adm
		}
	}
	return places
}

func IsRegistryURL(url string) bool {
	return strings.HasPrefix(url, sourcev1.HelmRepositoryTypeOCI+"://")
}
