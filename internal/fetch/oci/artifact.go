package oci

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxIndexDepth is how deep indexes may be nested. Clients push a single level.
const maxIndexDepth = 3

// An Artifact is the manifest of a digest, or the manifest that is selected from the index of a digest.
type Artifact struct {
	Digest digest.Digest // of the manifest
	*Document
}

// IsChart reports whether it is a Helm chart by its config.
func (d *Document) IsChart() bool { return d.Config != nil && d.Config.MediaType == HelmConfigType }

// ParseDigest parses spec.ref.digest. The errors have source-controller's texts.
func ParseDigest(text string) (digest.Digest, error) {
	algorithm, hex, ok := strings.Cut(text, ":")
	if !ok || algorithm == "" || hex == "" {
		return "", fmt.Errorf("cannot parse hash: %q", text)
	}
	if rest := strings.TrimLeft(hex, "0123456789abcdef"); rest != "" {
		return "", fmt.Errorf("found non-hex character in hash: %c", []rune(rest)[0])
	}
	sizes := map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}
	switch size, known := sizes[algorithm]; {
	case !known:
		return "", fmt.Errorf("unsupported hash: %q", algorithm)
	case len(hex) != size:
		return "", fmt.Errorf("wrong number of hex digits for %s: %s", algorithm, hex)
	}
	return digest.Parse(text)
}

// Manifest downloads the manifest of a digest. From an index it selects the manifest for linux/amd64, as Flux does; without
// one, the only manifest in it that is a Helm chart. The error matches [ErrUnparsable] if the content is not a manifest.
func (r *Repository) Manifest(ctx context.Context, d digest.Digest) (a *Artifact, err error) {
	err = r.operation(ctx, func(ctx context.Context, x *exchange) error {
		a, err = x.artifact(ctx, d, 0)
		return err
	})
	return a, err
}

// Pin is Digest for callers that need the manifest too: one request gets both. The artifact is nil if more than one
// request is needed, or if the content is not a manifest, which Manifest then reports.
func (r *Repository) Pin(ctx context.Context, tag string) (found digest.Digest, a *Artifact, err error) {
	if err := CheckTag(tag); err != nil {
		return "", nil, err
	}
	err = r.operation(ctx, func(ctx context.Context, x *exchange) error {
		content, err := x.manifest(ctx, tag)
		if err != nil {
			return err
		}
		found = x.digest
		if doc, err := parseManifest(content); err == nil && !doc.isIndex() {
			a = &Artifact{found, doc}
		}
		return nil
	})
	return found, a, err
}

// artifact returns the manifest of a digest, through indexes.
func (x *exchange) artifact(ctx context.Context, d digest.Digest, depth int) (*Artifact, error) {
	doc, err := x.document(ctx, d)
	switch {
	case err != nil:
		return nil, err
	case !doc.isIndex():
		return &Artifact{d, doc}, nil
	case depth == maxIndexDepth:
		return nil, noChart(fmt.Sprintf("more than %d nested image indexes", maxIndexDepth), "")
	}
	i := slices.IndexFunc(doc.Manifests, isDefaultPlatform)
	if i < 0 {
		return x.onlyChart(ctx, d, doc)
	}
	child, err := digest.Parse(doc.Manifests[i].Digest.String())
	if err != nil {
		return nil, noChart("the image index lists a manifest without a valid digest", "")
	}
	return x.artifact(ctx, child, depth+1)
}

// isDefaultPlatform reports whether Flux selects the manifest from an index. A manifest without a platform counts, too.
func isDefaultPlatform(d ocispec.Descriptor) bool {
	return d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == "amd64"
}

// onlyChart looks for the one chart among manifests for other platforms.
func (x *exchange) onlyChart(ctx context.Context, index digest.Digest, doc *Document) (*Artifact, error) {
	none := noChart(fmt.Sprintf("no child with platform linux/amd64 in index %s", index), "")
	children := doc.candidates()
	if len(children) > maxIndexChildren {
		return nil, none
	}
	var found []*Artifact
	for _, child := range children {
		doc, err := x.document(ctx, digest.Digest(child.Digest))
		if err != nil {
			return nil, err
		}
		if doc.IsChart() {
			found = append(found, &Artifact{digest.Digest(child.Digest), doc})
		}
	}
	if len(found) != 1 {
		return nil, none
	}
	return found[0], nil
}

func (x *exchange) document(ctx context.Context, d digest.Digest) (*Document, error) {
	content, err := x.manifest(ctx, d.String())
	if err != nil {
		return nil, err
	}
	return parseManifest(content)
}

// A LayerError reports that an artifact has no layer of the selected media type, or that it is too large.
type LayerError struct{ finding.Problem }

// unusableLayer returns an error with a hint at the existing layers; the hint may be "".
func unusableLayer(text, hint string) error {
	return &LayerError{finding.Problem{Code: finding.UnusableLayer, Text: text, Advice: hint}}
}

// A Layer is one layer of an artifact.
type Layer struct {
	ocispec.Descriptor
	// First is the media type of the first layer, if that is another one although no layer was selected.
	First string
}

// Layer returns the first layer of a media type. With an empty type it returns the first layer or, of a Helm chart, the
// layer with the chart. An error is a [*LayerError].
func (a *Artifact) Layer(mediaType string) (*Layer, error) {
	if len(a.Layers) == 0 {
		return nil, unusableLayer("no layers found in artifact", "")
	}
	i := a.index(mediaType)
	switch {
	case i < 0 && mediaType != "":
		return nil, unusableLayer(fmt.Sprintf("failed to find layer with media type '%s' in artifact", mediaType),
			"the artifact has layers of the media types: "+a.mediaTypes())
	case i < 0:
		i = 0
	}
	d := a.Layers[i]
	if _, err := digest.Parse(d.Digest.String()); err != nil || d.Size < 0 {
		return nil, unusableLayer("the artifact has a layer without a valid digest and size", "")
	}
	layer := &Layer{Descriptor: d}
	if i > 0 && mediaType == "" {
		layer.First = a.Layers[0].MediaType
	}
	return layer, nil
}

// index returns the index of the layer, or -1 if no layer has the media type.
func (a *Artifact) index(mediaType string) int {
	first := func(types ...string) int {
		return slices.IndexFunc(a.Layers, func(d ocispec.Descriptor) bool { return slices.Contains(types, d.MediaType) })
	}
	switch {
	case mediaType != "":
		return first(mediaType)
	case a.IsChart():
		return first(HelmChartType, helmLegacyType)
	}
	return 0
}

const maxShownTypes = 5

func (a *Artifact) mediaTypes() string {
	var all []string
	for _, d := range a.Layers {
		if t := finding.OneLine(d.MediaType, fetch.MaxName); !slices.Contains(all, t) && len(all) < maxShownTypes {
			all = append(all, t)
		}
	}
	return strings.Join(all, ", ")
}

// Pull downloads a layer into dst, at most limit bytes, and checks it while it is read.
func (r *Repository) Pull(ctx context.Context, l *Layer, dst fetch.Sink, limit int64) error {
	if l.Size > limit {
		return &LayerError{finding.Problem{
			Class: finding.Large, Text: fmt.Sprintf("layer %s has %d bytes, more than the limit of %d", l.Digest, l.Size, limit),
		}}
	}
	b := &blob{desc: l.Descriptor, dst: dst, limit: limit}
	return r.operation(ctx, func(ctx context.Context, x *exchange) error {
		x.stream = true
		return r.client.Retry(ctx, func(ctx context.Context) error { return x.download(ctx, b) })
	})
}
