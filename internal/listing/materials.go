package listing

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
)

// ImagesAnnotation is the annotation with which charts name their images for Artifact Hub.
const ImagesAnnotation = "artifacthub.io/images"

// Bill makes the components of a bill of materials. A nil Bill makes none.
type Bill struct {
	Lister
	Images bool         // with the images that charts name
	Store  *store.Store // of artifacts, nil without any
}

// Describe adds their components to the objects of results.
func (b *Bill) Describe(results []*reconcile.Result, objects []report.Object) {
	for i, r := range results {
		if c := b.component(r); c != nil {
			c.Found = []string{foundIn(objects[i].Cluster, r.Object.Object.String())}
			objects[i].Component = b.shown(c, r.Object.Object)
		}
	}
}

// Rendered returns the chart of a rendered release, with the images of its manifests. It returns nil if there is no chart.
func (b *Bill) Rendered(r *foresee.Release, manifests []byte) (*report.Component, error) {
	if b == nil || r.Fact.Chart == nil {
		return nil, nil
	}
	c := &report.Component{Kind: report.ComponentChart, Name: r.Fact.Chart.Name, URL: r.URL, Digest: r.Fact.Chart.Digest}
	if strings.HasPrefix(r.URL, "oci://") {
		c.Manifest, c.Digest = c.Digest, ""
	}
	b.look(c, r.Store, r.Artifact)
	c.Version = cmp.Or(c.Version, r.Fact.Chart.Version)
	release := foundIn(r.In.Cluster, r.Object.String())
	c.Found = []string{release}
	if !b.Images {
		return b.shown(c, r.Object), nil
	}
	objects, err := foresee.RenderedObjects(manifests)
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		foresee.EachImage(objects[name], func(field, reference string) {
			c.Parts = append(c.Parts, imageComponent(reference, name+" "+field+" of "+release))
		})
	}
	return b.shown(c, r.Object), err
}

// shown returns a component without the values of its object that are not shown.
func (b *Bill) shown(c *report.Component, of *manifest.Object) *report.Component {
	c.Map(func(text string) string { return b.Console.Secrets().Text(of.ConcealText(text)) })
	return c
}

// foundIn returns the name of an object or release with its cluster.
func foundIn(cluster, what string) string {
	if cluster == "" {
		return what
	}
	return what + " of " + cluster
}

// component returns the component that an object was resolved to, or nil.
func (b *Bill) component(r *reconcile.Result) *report.Component {
	if b == nil || r.Pin == nil || r.Failure != nil {
		return nil
	}
	c := ofPin(r.Pin)
	switch r.Object.Object.Kind {
	case sourcev1.GitRepositoryKind, sourcev1.BucketKind:
		c.Kind, c.Name = report.ComponentFiles, path.Base(c.URL)
	case sourcev1.OCIRepositoryKind:
		repository, _, _ := manifest.SplitReference(c.URL)
		c.Kind, c.Name = report.ComponentArtifact, path.Base(repository)
	case sourcev1.HelmChartKind:
		if c.Revision != "" { // packaged from files
			c.Parts = []report.Component{{Kind: report.ComponentFiles, Name: path.Base(c.URL), URL: c.URL, Revision: c.Revision}}
			c.Name, c.URL, c.Revision = path.Base(c.Name), "", ""
		}
	default:
		return nil
	}
	c.Signers = r.Signers()
	for _, d := range r.Dependencies {
		part := ofPin(&d.Pin)
		part.Name = d.Name
		c.Parts = append(c.Parts, part)
	}
	if artifact := r.Artifact(); b.Store != nil && artifact != nil && r.State == reconcile.Ready && c.Kind != report.ComponentFiles {
		c.Digest = cmp.Or(c.Digest, artifact.Digest)
		b.look(&c, b.Store, artifact.Path)
	}
	return &c
}

func ofPin(p *reconcile.Pin) report.Component {
	return report.Component{
		Kind: report.ComponentChart, Name: p.Chart, Version: p.Version, URL: p.URL, Digest: p.Digest, Manifest: p.Manifest, Revision: p.Revision,
	}
}

// look adds the metadata of a chart in storage. It adds nothing for an artifact that is not a chart.
func (b *Bill) look(c *report.Component, st *store.Store, artifact string) {
	loaded, err := reconcile.LoadChart(st, artifact)
	if err != nil {
		return // it was stored a moment ago: a later run reports that it cannot be read
	}
	c.Kind = report.ComponentChart
	c.Name, c.Version = loaded.Name(), cmp.Or(c.Version, loaded.Metadata.Version)
	b.add(c, loaded)
}

// add adds the license, the subcharts and the images of a chart. The loader has limited the depth of subcharts.
func (b *Bill) add(c *report.Component, loaded *helmchart.Chart) {
	c.License = licenseOf(loaded)
	if b.Images {
		c.Parts = append(c.Parts, annotatedImages(loaded.Metadata)...)
	}
	for _, sub := range loaded.Dependencies() {
		i := slices.IndexFunc(c.Parts, func(p report.Component) bool {
			return p.Kind == report.ComponentChart && p.Name == sub.Name() && p.Version == sub.Metadata.Version
		})
		if i < 0 {
			c.Parts = append(c.Parts, report.Component{Kind: report.ComponentChart, Name: sub.Name(), Version: sub.Metadata.Version})
			i = len(c.Parts) - 1
		}
		b.add(&c.Parts[i], sub)
	}
}

var licenseIdentifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^.{0,20}SPDX-License-Identifier:[ \t]*([^\r\n*]{1,200})`)
})

// licenseTitles returns the beginnings of license texts, with single spaces. GNU licenses do not state if later versions apply.
func licenseTitles() map[string]string {
	return map[string]string{
		"Apache License Version 2.0, January 2004": "Apache-2.0", "BSD 3-Clause License": "BSD-3-Clause", "ISC License": "ISC",
		"MIT License": "MIT", "Mozilla Public License Version 2.0": "MPL-2.0", "The MIT License (MIT)": "MIT",
	}
}

// licenseOf returns the license that a chart states: in an annotation of Artifact Hub, the OCI specification or Bitnami, or
// by the identifier or the title in its license file.
func licenseOf(loaded *helmchart.Chart) string {
	stated := loaded.Metadata.Annotations
	for _, name := range []string{"artifacthub.io/license", "org.opencontainers.image.licenses", "licenses"} {
		if stated[name] != "" {
			return stated[name]
		}
	}
	for _, f := range loaded.Files {
		if name, _, _ := strings.Cut(strings.ToUpper(f.Name), "."); name == "LICENSE" || name == "LICENCE" {
			if found := licenseIdentifier().FindSubmatch(f.Data); found != nil {
				return strings.TrimSpace(string(found[1]))
			}
			text := strings.Join(strings.Fields(string(f.Data[:min(len(f.Data), 1000)])), " ")
			for title, license := range licenseTitles() {
				if strings.HasPrefix(text, title) {
					return license
				}
			}
		}
	}
	return ""
}

// annotatedImages returns the images that a chart names for Artifact Hub.
func annotatedImages(m *helmchart.Metadata) []report.Component {
	var list []struct {
		Image string `json:"image"`
	}
	if err := yaml.Unmarshal([]byte(m.Annotations[ImagesAnnotation]), &list); err != nil {
		return nil
	}
	var images []report.Component
	for _, one := range list {
		images = append(images, imageComponent(one.Image, "annotation "+ImagesAnnotation+" of chart "+m.Name+" "+m.Version))
	}
	return images
}

// imageComponent returns a component for a container image, with the place where it was found.
func imageComponent(reference, found string) report.Component {
	repository, tag, digest := manifest.SplitReference(reference)
	return report.Component{Kind: report.ComponentImage, Name: path.Base(repository), Version: tag, URL: reference, Manifest: digest, Found: []string{found}}
}
