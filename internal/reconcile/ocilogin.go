package reconcile

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

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
	key := schemeKey{name.Host(), o.Identity.Key() + " " + o.Proxy.Key()}
	return r.plain.Do(ctx, key, func() (bool, error) { return r.registries.PlainHTTP(ctx, name, o) })
}
