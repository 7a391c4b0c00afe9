package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// Keys of artifact.metadata for charts from a registry. The annotations of the
// manifest keep their own names.
const (
	metadataPrefix = "helmsrc.dev/"

	metadataTag    = "helmsrc.dev/tag"
	metadataDigest = "helmsrc.dev/digest"
)

type registryCharts struct {
	r    *Reconciler
	repo *repository
}

func (c *registryCharts) refused(err error) error {
	if unpinned, ok := errors.AsType[*downloadError](err); ok {
		return pullFailure(fmt.Errorf("failed to download chart for remote reference: %w", unpinned.err))
	}
	return pullFailure(fmt.Errorf("failed to get chart version for remote reference: %w", err))
}

func (c *registryCharts) choose(ctx context.Context, w *remarks, name, version string) (*resolvedChart, error) {
	tag, err := c.tag(ctx, name, version)
	if err != nil {
		return nil, err
	}
	// A tag is resolved once per run: every chart with this version gets the same
	// bytes, even if the tag moves in the meantime.
	pinned, err := c.r.pinned.Do(ctx, chartKey{c.repo.identity, name, tag}, func() (*oci.Manifest, error) {
		return c.repo.registry.Pin(ctx, name, tag)
	})
	if err != nil {
		return nil, &downloadError{tag, c.otherwise(ctx, w, name, tag, err)}
	}
	decideLogin(ctx, func(ctx context.Context) auth.Login { return c.repo.registry.Shown(ctx, name) })
	return c.resolved(name, pinned), nil
}

func (c *registryCharts) pinDigest(ctx context.Context, name string, e *lock.Entry) (*oci.Manifest, error) {
	found, err := c.r.pinned.Do(ctx, chartKey{c.repo.identity, name, e.ManifestDigest}, func() (*oci.Manifest, error) {
		return c.repo.registry.PinDigest(ctx, name, digest.Digest(e.ManifestDigest))
	})
	if err != nil {
		return nil, &downloadError{e.Version, err}
	}
	pinned := *found
	pinned.Tag, pinned.Ref = strings.ReplaceAll(e.Version, "+", "_"), e.URL
	return &pinned, nil
}

// tag returns the tag of a version. An exact version is not looked up in the
// list of tags: the registry answers whether it exists.
func (c *registryCharts) tag(ctx context.Context, name, version string) (string, error) {
	if resolve.IsExact(version) {
		return version, nil
	}
	tags, err := c.tags(ctx, name)
	if err != nil {
		return "", err
	}
	chosen, err := resolve.ChooseFromTags(tags, version)
	if fetch.Deciding(ctx) {
		decideVersion(ctx, resolve.FromTags(tags), version, chosen.Tag)
	}
	return chosen.Tag, err
}

// tags returns the tags of a chart, fetched once per run.
func (c *registryCharts) tags(ctx context.Context, name string) ([]string, error) {
	return c.r.tags.Do(ctx, chartKey{c.repo.identity, name, ""}, func() ([]string, error) {
		return c.repo.registry.Tags(ctx, name)
	})
}

// otherwise adds a hint to the error of a missing tag: the tag of the version's other spelling, if the registry has it.
func (c *registryCharts) otherwise(ctx context.Context, w *remarks, name, version string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tags, failed := withUnversioned(c.tags(ctx, name))
	if failed != nil {
		w.debugf("no tag %s, and the tags cannot be listed: %v", version, failed)
		return err
	}
	other := resolve.OtherTag(version)
	if !slices.Contains(tags, strings.ReplaceAll(other, "+", "_")) {
		return err
	}
	hint := fmt.Sprintf("the tag is %s: write that as the version", other)
	return finding.WithCode(finding.NoMatch, finding.WithHint(err, hint))
}

// withUnversioned returns the tags even if no tag is a version.
func withUnversioned(tags []string, err error) ([]string, error) {
	if unversioned, ok := errors.AsType[*oci.NoTagsError](err); ok {
		return unversioned.Tags, nil
	}
	return tags, err
}

func (c *registryCharts) resolved(name string, pinned *oci.Manifest) *resolvedChart {
	metadata := annotationsOf(pinned.Annotations)
	if metadata == nil {
		metadata = map[string]string{}
	}
	created, _ := time.Parse(time.RFC3339, metadata[ocispec.AnnotationCreated]) // the zero time if it is invalid
	scope := c.repo.scope
	scope.Item = c.repo.object.Object.ConcealText(name + ":" + pinned.Tag)
	metadata[metadataTag] = pinned.Tag
	metadata[metadataDigest] = pinned.Digest.String()
	return &resolvedChart{
		Pin: Pin{
			Source: PinRegistry, Chart: name, Version: pinned.Version(), URL: pinned.Ref,
			Digest: pinned.Layer.Digest.String(), Manifest: pinned.Digest.String(),
		},
		published: pinned.Digest.String(),
		id:        fmt.Sprintf("%q %q %s", c.repo.identity, name, pinned.Digest),
		key:       blob.Key{Location: c.repo.location, Identity: c.repo.identity, Digest: pinned.Layer.Digest, Scope: scope},
		entry:     []any{pinned.Digest, pinned.Layer.Digest},
		time:      created,
		metadata:  metadata,
		subject: &verify.Subject{
			Repository: pinned.Repository,
			Digest:     pinned.Digest,
			Insecure:   c.repo.registry.Insecure(),
			Transport:  c.repo.registry.Reading(),
		},
		fetch: c.r.online("the archive of "+pinned.Ref, func(ctx context.Context, dst fetch.Sink, limit int64) error {
			return c.repo.registry.Archive(ctx, pinned, dst, limit)
		}),
		provenance: func(ctx context.Context, dst fetch.Sink) error {
			return c.repo.registry.ProvenanceFile(ctx, pinned, dst)
		},
		file:   archiveName(status.Build{Name: name, Version: pinned.Version()}),
		remote: func() (*remote.Repository, error) { return c.repo.registry.Remote(name) },
	}
}

// registryArchive fetches an archive that an HTTP index keeps in a registry. The
// repository's credentials are for another host, so they are sent only with
// passCredentials; otherwise the user's own logins are used.
func (r *Reconciler) registryArchive(repo *repository, ref string, chosen resolve.Candidate) func(context.Context, fetch.Sink, int64) error {
	chosen.URLs = []string{ref}
	return func(ctx context.Context, dst fetch.Sink, limit int64) error {
		return r.registries.Candidate(ctx, chosen, r.o.digestPolicy(), r.registryOptions(repo), dst, limit)
	}
}

func (r *Reconciler) registryProvenance(repo *repository, chosen resolve.Candidate) func(context.Context, fetch.Sink) error {
	return func(ctx context.Context, dst fetch.Sink) error {
		return r.registries.Provenance(ctx, chosen.URLs[0], chosen.Version, r.registryOptions(repo), dst)
	}
}

func (r *Reconciler) registryOptions(repo *repository) oci.Options {
	options := oci.Options{Identity: repo.tls.WithoutCertificate()}
	obj, ok := repo.object.Typed.(*sourcev1.HelmRepository)
	pass := ok && obj.Spec.PassCredentials
	if pass && !repo.tls.IsAmbient() {
		options.Identity = repo.tls
	}
	switch {
	case pass && repo.basic != nil:
		options.Logins = repo.basic
	default:
		options.Logins = r.secrets.Own()
	}
	return options
}

// annotationsOf returns the annotations of a manifest as metadata of an artifact,
// or nil. It drops keys with helmsrc's prefix: the publisher must not set them,
// for example the signer.
func annotationsOf(annotations map[string]string) map[string]string {
	var metadata map[string]string
	for key, value := range annotations {
		if strings.HasPrefix(key, metadataPrefix) {
			continue
		}
		if metadata == nil {
			metadata = map[string]string{}
		}
		metadata[key] = auth.RedactText(value)
	}
	return metadata
}
