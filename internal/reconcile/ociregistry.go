package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

type ociReconciliation struct {
	*reconciliation
	obj *sourcev1.OCIRepository
}

// openOCIRepository opens the registry of an OCIRepository with its credentials
// and TLS settings. Its errors have a reason.
func (p *ociReconciliation) openOCIRepository(ctx context.Context, obj *sourcev1.OCIRepository) (*ociRepository, error) {
	login := p.r.secrets.Artifact(obj)
	if err := login.Err(); err != nil {
		p.warnMissingLogin(obj, err)
		return nil, status.AuthenticationFailed.Wrap(fmt.Errorf("failed to get credential: %w", err))
	}
	p.warnSecrets(login.Warnings)
	scope := p.r.scopeOf(ctx, p.adm, bareURL(obj.Spec.URL))
	o := oci.Options{Timeout: timeoutOf(obj.Spec.Timeout), Memory: p.r.memory(scope)}
	var err error
	if o.Proxy, err = p.r.secrets.ArtifactProxy(obj); err != nil {
		return nil, status.AuthenticationFailed.Wrap(fmt.Errorf("failed to get proxy address: %w", err))
	}
	var warned []credential.Warning
	o.Identity, warned, err = p.r.secrets.Certificates(obj, obj.Spec.Insecure && p.adm.Object.Kind == sourcev1.OCIRepositoryKind)
	p.warnSecrets(warned)
	if err != nil {
		return nil, status.AuthenticationFailed.Wrap(fmt.Errorf("failed to generate transport for '%s': %w", auth.RedactURL(obj.Spec.URL), err))
	}
	name, err := ociName(obj)
	if err != nil {
		return nil, err
	}
	if o.Logins, err = login.Logins(ctx, name.Route(o)); err != nil {
		return nil, loginsFailure(err)
	}
	if o.Insecure, err = p.r.plainHTTP(ctx, obj, name, o); err != nil {
		return nil, status.OCIPullFailed.Wrap(fmt.Errorf("failed to determine artifact digest: %w", err))
	}
	opened := p.r.registries.Repository(name, o)
	p.warnWithheld(opened.Withheld(ctx))
	return &ociRepository{opened, p.r, ociIdentity(name, o), scope}, nil
}

// ociIdentity returns a key that is equal, within one run, for two
// OCIRepositories that receive the same answers.
func ociIdentity(name oci.Name, o oci.Options) string {
	key := fmt.Sprintf("artifact %s %s %t %v", name.Repository(), o.Identity.Key(), o.Insecure, o.Timeout)
	if o.Logins != nil {
		key += " " + o.Logins.Key()
	}
	return key + " " + o.Proxy.Key()
}

// ociName parses spec.url. Its error stalls the object.
func ociName(obj *sourcev1.OCIRepository) (oci.Name, error) {
	name, err := validate.ArtifactURL(obj)
	return name, status.URLInvalid.Wrap(err)
}

func (p *ociReconciliation) warnMissingLogin(obj *sourcev1.OCIRepository, err error) {
	var missing *manifest.NotFoundError
	if obj.Spec.SecretRef == nil || !errors.As(err, &missing) || missing.Name != obj.Spec.SecretRef.Name {
		return
	}
	p.out.Events = append(p.out.Events, status.Event{
		Reason: status.AuthenticationFailed, Message: "auth secret '" + missing.Name + "' not found",
	})
}

// loginsFailure attaches the reason to a login that cannot be obtained.
func loginsFailure(err error) error {
	if errors.Is(err, credential.ErrAccount) {
		return status.FeatureGateDisabled.Wrap(err)
	}
	return status.AuthenticationFailed.Wrap(err)
}

// plainHTTP reports whether the registry is reached without TLS. It tests the
// registry only if plain HTTP is allowed, once per run.
func (r *Reconciler) plainHTTP(ctx context.Context, obj *sourcev1.OCIRepository, name oci.Name, o oci.Options) (bool, error) {
	if !obj.Spec.Insecure && !name.Loopback() {
		return false, nil
	}
	key := name.Host() + " " + o.Identity.Key() + " " + o.Proxy.Key()
	return r.plain.Do(ctx, key, func() (bool, error) { return r.registries.PlainHTTP(ctx, name, o) })
}

// ociRepository is a repository that was opened with the credentials of an object.
type ociRepository struct {
	*oci.Repository
	r        *Reconciler
	identity string // equal, within one run, for two that receive the same answers
	scope    cache.Scope
}

// tags returns all tags, fetched once per run.
func (o *ociRepository) tags(ctx context.Context) ([]string, error) {
	return o.r.tags.Do(ctx, chartKey{o.identity, "", ""}, func() ([]string, error) { return o.Tags(ctx) })
}

// manifest returns the manifest with a digest, fetched once per run.
func (o *ociRepository) manifest(ctx context.Context, d digest.Digest) (*oci.Artifact, error) {
	return o.r.artifacts.Do(ctx, chartKey{o.identity, "", d.String()}, func() (*oci.Artifact, error) { return o.Manifest(ctx, d) })
}

func (o *ociRepository) tag(ctx context.Context, ref sourcev1.OCIRepositoryRef, charts bool) (string, error) {
	if ref.SemVer == "" {
		return cmp.Or(ref.Tag, defaultTag), nil
	}
	versions, err := resolve.NewTagRange(ref.SemVer, ref.SemverFilter, charts)
	if err != nil {
		return "", err
	}
	tags, err := o.tags(ctx)
	if err != nil {
		return "", err
	}
	tag, err := versions.Choose(tags)
	fetch.Decided(ctx, "candidates: tags: %d; '%s' selects %s", len(tags), ref.SemVer, cmp.Or(tag, "none of them"))
	return tag, err
}

// pinTag resolves a tag to a digest. With atOnce it also fetches the manifest, which is needed next.
func (o *ociRepository) pinTag(ctx context.Context, tag string, atOnce bool) (digest.Digest, error) {
	if err := oci.CheckTag(tag); err != nil {
		return "", finding.WithCode(finding.InvalidReference, err)
	}
	if !atOnce {
		return o.Digest(ctx, tag)
	}
	d, artifact, err := o.Pin(ctx, tag)
	if artifact != nil {
		key := chartKey{o.identity, "", d.String()}
		o.r.artifacts.Forget(key) // another object may have failed to get it
		_, err = o.r.artifacts.Do(ctx, key, func() (*oci.Artifact, error) { return artifact, nil })
	}
	return d, err
}

// otherwise adds a hint to the error of a missing tag.
func (o *ociRepository) otherwise(ctx context.Context, w *remarks, ref sourcev1.OCIRepositoryRef, tag string, err error) error {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case ref.SemVer == "" && ref.Tag == "":
		return finding.WithHint(err, "without spec.ref the tag is latest, which charts rarely have: name a tag with spec.ref.tag, or a range with spec.ref.semver")
	case ref.Tag == "":
		return err
	}
	missing := &finding.Problem{Field: []any{"spec", "ref", "tag"}, Err: err}
	tags, failed := o.tags(ctx)
	if failed != nil {
		w.debugf("no tag %s, and the tags cannot be listed: %v", tag, failed)
	} else if other := resolve.OtherTag(tag); slices.Contains(tags, other) {
		missing.Advice = fmt.Sprintf("the repository has the tag %s: write that in spec.ref.tag", other)
	}
	return missing
}

func ociFailure(reason status.Reason, err error) error {
	if fetch.AuthFailure(err) {
		reason = status.AuthenticationFailed
	}
	return reason.Wrap(err)
}

// ociResolution returns the part of the resolution that is known without the registry.
func ociResolution(obj *sourcev1.OCIRepository) *Resolution {
	ref := validate.ArtifactReference(obj)
	return &Resolution{
		Chart:      auth.RedactURL(obj.Spec.URL),
		Constraint: cmp.Or(ref.Digest, ref.SemVer, ref.Tag, defaultTag),
	}
}

type ociArtifact struct {
	Pin
	repo   *ociRepository
	digest digest.Digest
	shown  string // host/repository:tag, or @digest
	item   string // the same for the cache, without values of Secrets
}

func (at *ociArtifact) is(d digest.Digest, revision, shown string) {
	at.digest, at.Manifest, at.Revision, at.shown, at.URL = d, d.String(), revision, shown, "oci://"+shown
}

// scope returns the scope of the artifact in the cache.
func (at *ociArtifact) scope() cache.Scope {
	scope := at.repo.scope
	scope.Item = at.item
	return scope
}

func (at *ociArtifact) layerKey(layer *oci.Layer) blob.Key {
	return blob.Key{Location: at.repo.Repository.Repository(), Identity: at.repo.identity, Digest: layer.Digest, Scope: at.scope()}
}
