package plan

import (
	"fmt"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// Manifests summarizes the changes of the objects that a release is rendered to. Objects are named KIND.GROUP/NAMESPACE/NAME, like
// their files in the diff.
type Manifests struct {
	// DeletesData are removed objects whose data is deleted with them: volume claims, namespaces and custom resource definitions.
	DeletesData []string `json:"deletesData,omitempty"`
	Added       []string `json:"added,omitempty"`
	Changed     []string `json:"changed,omitempty"`
	Removed     []string `json:"removed,omitempty"`
	CRDs        []string `json:"crds,omitempty"` // definitions that are added, changed or removed
	Images      []Image  `json:"images,omitempty"`
	// Stripped is the number of objects that differ only in parts that the diff leaves out.
	Stripped int `json:"stripped,omitempty"`
}

// Image is a container image and its replacement.
type Image struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Differ reports whether any object changes.
func (m *Manifests) Differ() bool {
	return len(m.Added)+len(m.Changed)+len(m.Removed)+m.Stripped > 0
}

// ManifestTexts returns lines that summarize the rendered changes of all releases. Lines about deleted data come first.
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
