package verify

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// artifactManifest is the manifest type of a draft of the specification, which notation has used for a while.
const artifactManifest = "application/vnd.oci.artifact.manifest.v1+json"

// emptyType is the type that some registries list for every artifact without a configuration.
const emptyType = "application/vnd.oci.empty.v1+json"

// referrers lists the artifacts that refer to the subject: from the registry's API or, if it has no such API, from the
// index under the subject's tag.
func (r *reader) referrers(ctx context.Context) ([]ocispec.Descriptor, error) {
	u := r.url("referrers", r.subject.Digest.String())
	var all []ocispec.Descriptor
	for page := 0; u != nil; page++ {
		if page == maxReferrersPages {
			return nil, r.tooMany("pages of artifacts that refer to ", maxReferrersPages)
		}
		a, err := r.get(ctx, u, ocispec.MediaTypeImageIndex, maxManifestBytes, "list of artifacts that refer to "+r.subject.Digest.String(), "")
		switch {
		case err != nil:
			return nil, err
		case page == 0 && noReferrersAPI(a):
			return r.tagged(ctx)
		case a.code != http.StatusOK:
			return nil, badAnswer(u, a.code)
		}
		found, err := r.parseIndex(a.content)
		if err != nil {
			return nil, err
		}
		if all = append(all, found...); len(all) > maxReferrers {
			return nil, r.tooMany("artifacts that refer to ", maxReferrers)
		}
		u = nextPage(u, a.header)
	}
	return all, nil
}

func (r *reader) tooMany(what string, limit int) error {
	return tooMany(what+r.subject.Digest.String(), limit)
}

// noReferrersAPI reports whether a registry does not know the request. A failing registry does not count.
func noReferrersAPI(a *answer) bool {
	if a.code == http.StatusOK {
		return a.mediaType() != ocispec.MediaTypeImageIndex
	}
	return fetch.NoReferrers(a.code)
}

// tagged reads the index that clients maintain in a registry without the API.
func (r *reader) tagged(ctx context.Context) ([]ocispec.Descriptor, error) {
	tag, ok := tagOf(r.subject, "")
	if !ok {
		return nil, nil
	}
	a, err := r.named(ctx, tag, "index "+tag, ocispec.MediaTypeImageIndex)
	if a == nil || err != nil {
		return nil, err
	}
	all, err := r.parseIndex(a.content)
	if err == nil && len(all) > maxReferrers {
		err = r.tooMany("artifacts that refer to ", maxReferrers)
	}
	return all, err
}

// tagOf returns the tag of the referrers of a digest, or of its signature. It returns false for a digest too long for a tag.
func tagOf(s Subject, suffix string) (string, bool) {
	tag := strings.Replace(s.Digest.String(), ":", "-", 1) + suffix
	return tag, len(tag) <= 128
}

func (r *reader) parseIndex(content []byte) ([]ocispec.Descriptor, error) {
	var index ocispec.Index
	if err := json.Unmarshal(content, &index); err != nil {
		return nil, refused("", "the list of artifacts that refer to "+r.subject.Digest.String()+" cannot be read", err)
	}
	return index.Manifests, nil
}

// nextPage parses the Link header. A link to another host is ignored: it is not part of this registry.
func nextPage(u *url.URL, h http.Header) *url.URL {
	for _, link := range h.Values("Link") {
		target, params, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
		if !ok || !strings.Contains(params, `rel="next"`) {
			continue
		}
		next, err := u.Parse(target)
		if err == nil && next.Host == u.Host && next.Scheme == u.Scheme {
			return next
		}
	}
	return nil
}
