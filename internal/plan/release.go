package plan

import (
	"strings"
)

// ID names a HelmRelease. Cluster is empty where there is only one, Kind for those of Flux 2: of Flux 1 it has the group in it.
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

// Release is what decides about a HelmRelease, as the manifests of one side say it.
type Release struct {
	ID
	// File is where it stands, "" if that is not known.
	File      string
	Suspended bool
	// Blocked says what helm-controller would wait for, "" for nothing.
	Blocked string
	// Target is the Helm release.
	Target Target
	// InPlace is upgrade.chartNameChangeStrategy: InPlaceUpdate.
	InPlace bool
	// Origin is equal for releases that take the same chart, whatever that is: then neither has a Chart.
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
	// Forced is the value of reconcile.fluxcd.io/forceAt where requestedAt has the same.
	Forced string
	// Assumed says what is not known and taken as unchanged.
	Assumed []string
	// DependsOn are releases that have to be ready first.
	DependsOn []ID
	// Kept is true of a release that no Kustomization removes when its manifest goes.
	Kept bool
	// Operated is what a release of Flux 1 has besides, nil for those of Flux 2.
	Operated *Operated
}

// Target names a Helm release.
type Target struct {
	Name             string `json:"name"`
	Namespace        string `json:"namespace"`
	StorageNamespace string `json:"storageNamespace"`
}

// Chart is what a release would install.
type Chart struct {
	Name string `json:"name"`
	// Version is as helm-controller writes it, with what distinguishes it from the published one.
	Version string `json:"version"`
	// Digest is that of the archive or of the manifest in its registry, "" if it is not known.
	Digest string `json:"digest,omitempty"`
	// Source is what it comes from, as KIND/NAMESPACE/NAME.
	Source string `json:"source,omitempty"`
	// Made is equal for charts whose values files and other settings are equal: a change gives the version another
	// suffix. It is "" for a chart that is stored as it was published.
	Made string `json:"-"`
	// Moving is true of a chart whose version has the digest in it.
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
