package oci

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The media types of artifacts that a registry may have under a chart's name.
const (
	HelmConfigType     = "application/vnd.cncf.helm.config.v1+json"
	HelmChartType      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	helmLegacyType     = "application/tar+gzip"
	HelmProvenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"

	dockerManifestType = "application/vnd.docker.distribution.manifest.v2+json"
	dockerListType     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerConfigType   = "application/vnd.docker.container.image.v1+json"
	fluxConfigType     = "application/vnd.cncf.flux.config.v1+json"
)

func manifestTypes() []string {
	return []string{ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, dockerManifestType, dockerListType}
}

// maxIndexChildren is how many manifests of an image index are looked at for a chart.
const maxIndexChildren = 8

// A Manifest is a chart in a registry, pinned: everything else is requested by digest.
type Manifest struct {
	Ref        string        // oci://host/repository:version, or @digest
	Repository string        // host/repository
	Tag        string        // as the registry has it; empty if it was requested by digest
	Digest     digest.Digest // of the tag: the chart's manifest, or an image index that lists it
	Chart      digest.Digest // of the chart's manifest

	Annotations map[string]string   // of the chart's manifest
	Layer       ocispec.Descriptor  // the archive
	Provenance  *ocispec.Descriptor // its .prov file, or nil

	ref   registry.Reference
	chart string
}

// Version is the tag as a version: a tag cannot contain a "+", and Helm writes "_" instead.
func (m *Manifest) Version() string { return strings.ReplaceAll(m.Tag, "_", "+") }

// Pin requests the manifest of a chart's version, once. The version's "+" is a "_" in the tag.
func (o *Namespace) Pin(ctx context.Context, chart, version string) (*Manifest, error) {
	ref, err := o.repository(chart)
	if err == nil {
		ref.Reference = strings.ReplaceAll(version, "+", "_")
		if ref.ValidateReferenceAsTag() != nil {
			err = fmt.Errorf("%q cannot be a tag", finding.OneLine(ref.Reference, fetch.MaxName))
		}
	}
	return o.pin(ctx, ref, chart, shownRef(ref, finding.OneLine(version, fetch.MaxName)), err)
}

// PinDigest is Pin for a version that is known by digest.
func (o *Namespace) PinDigest(ctx context.Context, chart string, d digest.Digest) (*Manifest, error) {
	ref, err := o.repository(chart)
	if err == nil {
		ref.Reference = d.String()
		_, err = digest.Parse(d.String())
	}
	return o.pin(ctx, ref, chart, scheme+ref.Registry+"/"+ref.Repository+"@"+d.String(), err)
}

func (o *Namespace) pin(ctx context.Context, ref registry.Reference, chart, shown string, err error) (*Manifest, error) {
	m := &Manifest{Ref: shown, Repository: ref.Registry + "/" + ref.Repository, ref: ref, chart: chart}
	if err == nil {
		err = o.operation(ctx, ref, chart, func(x *exchange) error { return x.pin(ctx, m) })
	}
	if err != nil {
		return nil, fmt.Errorf("failed to get '%s': %w", shown, err)
	}
	return m, nil
}

// pin fills in the manifest of the reference.
func (x *exchange) pin(ctx context.Context, m *Manifest) error {
	content, err := x.manifest(ctx, x.ref.Reference)
	if err != nil {
		return err
	}
	m.Digest, m.Chart = x.digest, x.digest
	if !strings.Contains(x.ref.Reference, ":") {
		m.Tag = x.ref.Reference
	}
	doc, err := parseManifest(content)
	if err != nil {
		return err
	}
	if doc.isIndex() {
		return x.pinChild(ctx, m, doc)
	}
	return m.fill(doc)
}

// manifest reads the manifest that a tag or a digest names.
func (x *exchange) manifest(ctx context.Context, reference string) ([]byte, error) {
	d, err := digest.Parse(reference)
	if err != nil && x.memory().Offline() {
		if d, err = x.rememberedTag(reference); err != nil {
			return nil, err
		}
	}
	if err == nil {
		if content, ok := x.rememberedManifest(d); ok {
			x.digest = d
			return content, nil
		}
	}
	if x.memory().Offline() {
		return nil, x.memory().Missing("the manifest " + x.reference("@"+d.String()))
	}
	_, body, err := x.repository().FetchReference(ctx, reference)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	content, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if doc, err := parseManifest(content); err == nil && doc.refers() { // other answers are not written to disk
		x.rememberManifest(reference, content)
	}
	return content, nil
}

// pinChild selects the first manifest of an image index that is a chart. Manifests with the type of a chart come first,
// then the one for linux/amd64, which Flux selects from an index, then the rest in their order.
func (x *exchange) pinChild(ctx context.Context, m *Manifest, index *Document) error {
	err := noChart("the image index lists no manifest", "")
	for i, child := range index.candidates() {
		if i == maxIndexChildren {
			break
		}
		content, failed := x.manifest(ctx, child.Digest.String())
		if failed != nil {
			return failed
		}
		doc, refused := parseManifest(content)
		if refused == nil {
			refused = m.fill(doc)
		}
		if refused == nil {
			m.Chart = child.Digest
			return nil
		}
		if i == 0 {
			err = refused
		}
	}
	return err
}

// A Document is a manifest or an index.
type Document struct {
	MediaType   string               `json:"mediaType"`
	Config      *ocispec.Descriptor  `json:"config"`
	Layers      []ocispec.Descriptor `json:"layers"`
	Manifests   []ocispec.Descriptor `json:"manifests"`
	Annotations map[string]string    `json:"annotations"`
	FSLayers    json.RawMessage      `json:"fsLayers"`
}

func parseManifest(content []byte) (*Document, error) {
	var doc Document
	if err := json.Unmarshal(content, &doc); err != nil {
		return nil, &finding.Problem{
			Code: finding.InvalidArchive, Class: finding.Lasting, Text: "the manifest is not valid JSON", Advice: notARegistry(content), Err: ErrUnparsable,
		}
	}
	switch {
	case doc.FSLayers != nil:
		return nil, noChart("the manifest has the outdated schema version 1: it is a container image", "")
	case doc.Manifests != nil && (doc.Config != nil || doc.Layers != nil):
		return nil, noChart("the manifest is ambiguous: it is an image and an index at once", "")
	}
	return &doc, nil
}

func notARegistry(content []byte) string {
	if fetch.LooksLikeHTML(content[:min(len(content), fetch.MaxHead)]) {
		return "the server answers with a web page: it may not be a registry"
	}
	return ""
}

// refers reports whether a document is a manifest at all: it refers to something.
func (d *Document) refers() bool {
	return d.Config != nil || len(d.Layers) > 0 || len(d.Manifests) > 0
}

func (d *Document) isIndex() bool {
	return d.Manifests != nil || d.MediaType == ocispec.MediaTypeImageIndex || d.MediaType == dockerListType
}

// candidates lists the children that may be a chart, the likely ones first.
func (d *Document) candidates() []ocispec.Descriptor {
	rank := func(c ocispec.Descriptor) int {
		switch {
		case c.ArtifactType == HelmConfigType:
			return 0
		case c.Platform != nil && c.Platform.OS == "linux" && c.Platform.Architecture == "amd64":
			return 1
		case c.Platform != nil && c.Platform.OS == "unknown": // attestations
			return 3
		}
		return 2
	}
	children := slices.DeleteFunc(slices.Clone(d.Manifests), func(c ocispec.Descriptor) bool {
		_, err := digest.Parse(c.Digest.String())
		return err != nil || c.MediaType != ocispec.MediaTypeImageManifest && c.MediaType != dockerManifestType
	})
	slices.SortStableFunc(children, func(a, b ocispec.Descriptor) int { return rank(a) - rank(b) })
	return children
}

// fill copies the fields of a chart's manifest. Other manifests are an error.
func (m *Manifest) fill(doc *Document) error {
	if !doc.IsChart() {
		return notAChart(doc.Config)
	}
	if len(doc.Layers) == 0 {
		return noChart("manifest does not contain minimum number of descriptors (2), descriptors found: 1", "")
	}
	var layer, provenance *ocispec.Descriptor
	for i := range doc.Layers {
		switch doc.Layers[i].MediaType {
		case HelmChartType, helmLegacyType:
			// Of several, Helm takes the last.
			layer = &doc.Layers[i]
		case HelmProvenanceType:
			provenance = &doc.Layers[i]
		}
	}
	if layer == nil {
		return noChart("manifest does not contain a layer with mediatype "+HelmChartType, "")
	}
	if _, err := digest.Parse(layer.Digest.String()); err != nil || layer.Size < 0 {
		return noChart("manifest contains a layer without a valid digest and size", "")
	}
	m.Annotations, m.Layer, m.Provenance = doc.Annotations, *layer, provenance
	return nil
}

// notAChart returns an error that names the real type of the artifact.
func notAChart(config *ocispec.Descriptor) error {
	const text = "could not load config with mediatype " + HelmConfigType
	kind := ""
	if config != nil {
		kind = config.MediaType
	}
	switch kind {
	case "":
		return noChart(text, "")
	case ocispec.MediaTypeImageConfig, dockerConfigType:
		return noChart(text+": it is a container image, not a Helm chart", finding.URLOfCharts)
	case fluxConfigType:
		return noChart(text+": it is a Flux artifact, not a Helm chart", "artifacts that were pushed with 'flux push artifact' are sources of kind OCIRepository")
	}
	return noChart(fmt.Sprintf("%s: its config has mediatype %s", text, finding.OneLine(kind, fetch.MaxName)), "")
}
