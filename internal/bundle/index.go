package bundle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// indexName is the file that makes a Helm repository of a layout.
const indexName = "index.yaml"

// helmIndex is the index of a Helm repository.
type helmIndex struct {
	APIVersion string                   `json:"apiVersion"`
	Entries    map[string][]*indexEntry `json:"entries"`
}

type indexEntry struct {
	*helmchart.Metadata

	URLs   []string `json:"urls"`
	Digest string   `json:"digest"`
}

// index lists the charts, newest first.
func (c *Charts) index() ([]byte, error) {
	for _, list := range c.entries {
		slices.SortFunc(list, func(a, b *indexEntry) int {
			return cmp.Or(newerFirst(a.Version, b.Version), strings.Compare(b.Version, a.Version), strings.Compare(a.Digest, b.Digest))
		})
	}
	return yaml.Marshal(helmIndex{"v1", c.entries})
}

func newerFirst(a, b string) int {
	v, err := semver.NewVersion(a)
	w, failed := semver.NewVersion(b)
	if err != nil || failed != nil {
		return 0
	}
	return w.Compare(v)
}
