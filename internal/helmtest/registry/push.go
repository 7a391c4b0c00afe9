package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/chart"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// The media types of a chart.
const (
	ConfigType     = "application/vnd.cncf.helm.config.v1+json"
	LayerType      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	ProvenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// Push stores a chart as `helm push` does.
func (r *Registry) Push(p *helmtest.Published) error {
	repo, err := remote.NewRepository("registry.test/" + p.Repository)
	if err != nil {
		return err
	}
	repo.PlainHTTP = true
	repo.Client = pusher{r, p.Repository}
	manifest, err := pushManifest(repo, p)
	if err != nil {
		return err
	}
	if p.Index {
		if manifest, err = pushIndex(repo, manifest); err != nil {
			return err
		}
	}
	return repo.Tag(context.Background(), manifest, p.Tag)
}

// pusher sends requests to the registry without a connection, with the required credentials.
type pusher struct {
	registry   *Registry
	repository string
}

// Transport returns a transport that reaches the registry as [Registry.Push] does, to add more to a repository.
func (r *Registry) Transport(repository string) http.RoundTripper { return pusher{r, repository} }

// RoundTrip calls Do.
func (p pusher) RoundTrip(req *http.Request) (*http.Response, error) { return p.Do(req) }

// Do sends a request to the registry.
func (p pusher) Do(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if a := p.registry.config.Auth.Basic; a != "" {
		user, password, _ := strings.Cut(a, ":")
		req.SetBasicAuth(user, password)
	}
	if p.registry.Tokens != nil {
		t, err := p.registry.Tokens.Issue("helmtest", "repository:"+p.repository+":pull,push")
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+t)
	}
	if req.Body == nil {
		req.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.registry.ServeHTTP(w, req)
	res := w.Result()
	res.Request = req
	return res, nil
}

func pushManifest(repo *remote.Repository, p *helmtest.Published) (ocispec.Descriptor, error) {
	config, err := json.Marshal(p.Metadata)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	m := ocispec.Manifest{
		Versioned:   specs.Versioned{SchemaVersion: 2},
		MediaType:   ocispec.MediaTypeImageManifest,
		Annotations: Annotations(&p.Metadata, p.Created),
	}
	if m.Config, err = push(repo, cmp.Or(p.ConfigType, ConfigType), config); err != nil {
		return ocispec.Descriptor{}, err
	}
	if m.Layers, err = pushLayers(repo, p); err != nil {
		return ocispec.Descriptor{}, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return push(repo, m.MediaType, b)
}

func pushLayers(repo *remote.Repository, p *helmtest.Published) ([]ocispec.Descriptor, error) {
	layers := map[string][]byte{cmp.Or(p.MediaType, LayerType): p.Archive}
	if p.MediaType == "-" {
		layers = map[string][]byte{"text/plain": []byte("no chart\n")}
	}
	if p.Provenance {
		layers[ProvenanceType] = fmt.Appendf(nil, "provenance of %s\n", p.Metadata.Name)
	}
	if p.ProvenanceFile != nil {
		layers[ProvenanceType] = p.ProvenanceFile
	}
	var list []ocispec.Descriptor
	for _, mediaType := range slices.Sorted(maps.Keys(layers)) {
		d, err := push(repo, mediaType, layers[mediaType])
		if err != nil {
			return nil, err
		}
		d.Size += p.SizeLie
		list = append(list, d)
	}
	// Helm orders layers by digest.
	slices.SortFunc(list, func(a, b ocispec.Descriptor) int { return cmp.Compare(a.Digest, b.Digest) })
	return list, nil
}

func pushIndex(repo *remote.Repository, manifest ocispec.Descriptor) (ocispec.Descriptor, error) {
	b, err := json.Marshal(ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []ocispec.Descriptor{manifest},
	})
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return push(repo, ocispec.MediaTypeImageIndex, b)
}

func push(repo *remote.Repository, mediaType string, b []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, b)
	if err := repo.Push(context.Background(), d, bytes.NewReader(b)); err != nil {
		return d, fmt.Errorf("push %s %s: %w", mediaType, digest.FromBytes(b), err)
	}
	return d, nil
}

// Annotations returns the annotations that `helm push` adds to a manifest.
func Annotations(m *chart.Metadata, created time.Time) map[string]string {
	const prefix = "org.opencontainers.image."
	a := maps.Clone(m.Annotations)
	if a == nil {
		a = map[string]string{}
	}
	set := func(key, value string) {
		if _, own := a[prefix+key]; value != "" && !own {
			a[prefix+key] = value
		}
	}
	a[prefix+"title"], a[prefix+"version"] = m.Name, m.Version
	set("description", m.Description)
	set("url", m.Home)
	set("created", created.Format(time.RFC3339))
	if len(m.Sources) > 0 {
		set("source", m.Sources[0])
	}
	var authors []string
	for _, who := range m.Maintainers {
		if who.Email != "" {
			authors = append(authors, who.Name+" ("+who.Email+")")
		} else {
			authors = append(authors, who.Name)
		}
	}
	set("authors", strings.Join(authors, ", "))
	return a
}
