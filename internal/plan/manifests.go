package plan

import (
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// Manifests sums up what changes in the objects that a release is rendered to. Objects are called KIND.GROUP/NAMESPACE/NAME, as
// their files in the diff.
type Manifests struct {
	// DeletesData are removed objects that take data with them: volume claims, namespaces and definitions of resources.
	DeletesData []string `json:"deletesData,omitempty"`
	Added       []string `json:"added,omitempty"`
	Changed     []string `json:"changed,omitempty"`
	Removed     []string `json:"removed,omitempty"`
	CRDs        []string `json:"crds,omitempty"` // of those that are added, changed or removed
	Images      []Image  `json:"images,omitempty"`
	// Stripped is the number of objects that differ only in what the diff leaves out.
	Stripped int `json:"stripped,omitempty"`
}

// Image is a container image that another one replaces.
type Image struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Differ reports whether any object is not as it was.
func (m *Manifests) Differ() bool {
	return len(m.Added)+len(m.Changed)+len(m.Removed)+m.Stripped > 0
}

// ManifestTexts are the lines that sum up what all releases are rendered to. What deletes data comes first.
func (p *Plan) ManifestTexts() []string {
	var first, rest []string
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Manifests == nil || !c.Manifests.Differ() {
			continue
		}
		name := strings.TrimPrefix(c.Cluster+": "+c.Namespace+"/"+c.Name, ": ")
		for _, object := range c.Manifests.DeletesData {
			first = append(first, name+": deletes data with "+object)
		}
		rest = append(rest, c.Manifests.texts(name)...)
	}
	return append(first, rest...)
}

func (m *Manifests) texts(name string) []string {
	var texts []string
	if len(m.Added)+len(m.Changed)+len(m.Removed) > 0 {
		texts = append(texts, fmt.Sprintf("%s: objects: %d added, %d changed, %d removed", name, len(m.Added), len(m.Changed), len(m.Removed)))
	}
	if m.Stripped > 0 {
		texts = append(texts, fmt.Sprintf(finding.Stripped, name, m.Stripped))
	}
	for _, image := range m.Images {
		texts = append(texts, fmt.Sprintf("%s: image %s -> %s", name, image.Before, image.After))
	}
	for _, crd := range m.CRDs {
		texts = append(texts, name+": CRD "+crd)
	}
	return texts
}
