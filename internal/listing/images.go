package listing

import (
	"maps"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/report"
)

// Rendered is the chart of a release that was rendered, with the images of its manifests. It returns nil if there is no chart.
func (b *Bill) Rendered(r *foresee.Release, manifests []byte) (*report.Component, error) {
	if r.Fact.Chart == nil {
		return nil, nil
	}
	c := report.Component{Kind: report.ComponentChart, Name: r.Fact.Chart.Name, URL: r.URL, Digest: r.Fact.Chart.Digest}
	if strings.HasPrefix(r.URL, "oci://") {
		c.Manifest, c.Digest = c.Digest, ""
	}
	b.Store = r.Store
	b.look(&c, r.Artifact)
	if c.Version == "" {
		c.Version = r.Fact.Chart.Version
	}
	release := foundIn(r.In.Cluster, r.Object.String())
	c.Found = []string{release}
	var err error
	if b.Images {
		var images []report.Component
		images, err = renderedImages(manifests, release)
		c.Parts = append(c.Parts, images...)
	}
	c.Map(func(text string) string { return b.Console.Secrets().Text(r.Object.ConcealText(text)) })
	return &c, err
}

// renderedImages are the images that fields of rendered objects name.
func renderedImages(manifests []byte, release string) ([]report.Component, error) {
	objects, err := foresee.RenderedObjects(manifests)
	if err != nil {
		return nil, err
	}
	var images []report.Component
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		foresee.EachImage(objects[name], func(field, reference string) {
			images = append(images, imageComponent(reference, name+" "+field+" of "+release))
		})
	}
	return images, nil
}
