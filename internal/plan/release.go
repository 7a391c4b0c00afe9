package plan

import (
	"strings"
)

// ID identifies a HelmRelease. Cluster is empty if there is only one. Kind is empty for Flux 2, and has the group for Flux 1.
type ID struct {
	Cluster   string `json:"cluster,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (id ID) String() string {
	text := id.Namespace + "/" + id.Name
	if _, group, ok := strings.Cut(id.Kind, "."); ok {
		text += " of " + group
	}
	return text
}

// Release holds the fields that decide about a HelmRelease, from the manifests of one side.
type Release struct {
	ID
	// File is the file of the HelmRelease, "" if it is not known.
	File      string
	Suspended bool
	// Blocked is the problem that helm-controller waits for, "" without one.
	Blocked string
	// Target is the Helm release.
	Target Target
	// InPlace is upgrade.chartNameChangeStrategy: InPlaceUpdate.
	InPlace bool
	// Origin is equal for releases that use the same chart, even if it is not known: then both have no Chart.
	Origin string
	Chart  *Chart
	// Asked is the chart and version of the manifest.
	Asked string
	// Values is the digest of the composed values, "" if it cannot be known. ValuesKey is equal for releases whose values
	// are equal as far as they are known.
	Values, ValuesKey string
	// PostRenderers and CommonMetadata are digests of these fields, "" without them.
	PostRenderers, CommonMetadata string
	// Fields are the other fields of the spec, as JSON.
	Fields map[string]string
	// Forced is the value of reconcile.fluxcd.io/forceAt if requestedAt has the same value.
	Forced string
	// Assumed lists facts that are not known, and assumed to be unchanged.
	Assumed []string
	// DependsOn are the releases that have to be ready first.
	DependsOn []ID
	// Kept is set if no Kustomization removes the release with its manifest.
	Kept bool
	// Operated holds the additional fields of a release of Flux 1; it is nil for Flux 2.
	Operated *Operated
}

// Target identifies a Helm release.
type Target struct {
	Name             string `json:"name"`
	Namespace        string `json:"namespace"`
	StorageNamespace string `json:"storageNamespace"`
}

// Chart is the chart that a release would install.
type Chart struct {
	Name string `json:"name"`
	// Version is the version as helm-controller writes it, with a suffix that distinguishes it from the published version.
	Version string `json:"version"`
	// Digest is the digest of the archive or of the manifest in its registry, "" if it is not known.
	Digest string `json:"digest,omitempty"`
	// Source is the source of the chart, as KIND/NAMESPACE/NAME.
	Source string `json:"source,omitempty"`
	// Made is equal for charts whose values files and other settings are equal: a change gives the version another
	// suffix. It is "" for a chart that is stored as it was published.
	Made string `json:"-"`
	// Moving is set for a chart whose version contains the digest.
	Moving bool `json:"-"`
}

// differs reports whether two charts are known to have different bytes.
func (c *Chart) differs(now *Chart) bool {
	return c != nil && now != nil && c.Digest != "" && now.Digest != "" && c.Digest != now.Digest
}

func (c *Chart) String() string {
	if c == nil {
		return ""
	}
	return strings.TrimSpace(c.Name + " " + c.Version)
}
