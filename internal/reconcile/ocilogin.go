package reconcile

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
)

// openOCIRepository opens the registry of an OCIRepository with its credentials
// and TLS settings. Errors carry their reason.
func (p *reconciliation) openOCIRepository(ctx context.Context, obj *sourcev1.OCIRepository) (*oci.Repository, string, error) {
	pull, err := p.r.pullSecrets(obj)
	if err != nil {
		p.missingLoginEvent(obj, err)
		return nil, "", status.AuthenticationFailed.Wrap(fmt.Errorf("failed to get credential: %w", err))
	}
	place := []any{"spec", "secretRef", "name"}
	if obj.Spec.SecretRef == nil {
		place = []any{"spec", "serviceAccountName"}
	}
	p.warnEach(finding.OddSecret, pull.warnings, place...)
	o := oci.Options{Timeout: timeoutOf(obj.Spec.Timeout)}
	if o.Proxy, err = p.r.ociProxy(obj); err != nil {
		return nil, "", status.AuthenticationFailed.Wrap(fmt.Errorf("failed to get proxy address: %w", err))
	}
	var odd []string
	o.Identity, odd, err = p.r.ociCertificates(obj)
	p.warnEach(finding.OddSecret, odd, "spec", "certSecretRef", "name")
	if err != nil {
		return nil, "", status.AuthenticationFailed.Wrap(fmt.Errorf("failed to generate transport for '%s': %w", auth.RedactURL(obj.Spec.URL), err))
	}
	name, err := ociName(obj)
	if err != nil {
		return nil, "", err
	}
	if o.Logins, err = p.r.ociLogins(ctx, obj, name.Route(o), pull); err != nil {
		return nil, "", err
	}
	if o.Insecure, err = p.r.plainHTTP(ctx, obj, name, o); err != nil {
		return nil, "", status.OCIPullFailed.Wrap(fmt.Errorf("failed to determine artifact digest: %w", err))
	}
	opened := p.r.registries.Repository(name, o)
	p.warnWithheld(opened.Withheld(ctx))
	return opened, ociIdentity(name, o), nil
}

// ociIdentity is equal for two OCIRepositories that get the same answers, within
// one run.
func ociIdentity(name oci.Name, o oci.Options) string {
	key := fmt.Sprintf("artifact %s %s %t %v", name.Repository(), o.Identity.Key(), o.Insecure, o.Timeout)
	if o.Logins != nil {
		key += " " + o.Logins.Key()
	}
	return key + " " + o.Proxy.Key()
}

// ociName is spec.url, which stalls if it is none of a repository.
func ociName(obj *sourcev1.OCIRepository) (oci.Name, error) {
	name, err := oci.ParseURL(obj.Spec.URL)
	if err != nil {
		err = fmt.Errorf("URL validation failed for '%s': %w", auth.RedactURL(obj.Spec.URL), err)
	}
	return name, status.URLInvalid.Wrap(err)
}

// pulled are the Secrets with logins that an OCIRepository refers to.
type pulled struct {
	logins   *auth.PullSecrets // nil if there are none
	named    bool              // it refers to some, although they may be of no use
	missing  bool              // of which one is not in the input
	warnings []string
}

// pullSecrets reads the Secret of spec.secretRef and those of the account that
// spec.serviceAccountName names.
func (r *Reconciler) pullSecrets(obj *sourcev1.OCIRepository) (*pulled, error) {
	p := &pulled{}
	var secrets []*manifest.Secret
	add := func(name, failed string) error {
		p.named = true
		secret, err := r.inventory.Secret(obj.Namespace, name)
		if r.forgiven(err) {
			p.missing = true
			return nil
		}
		if err != nil {
			return fmt.Errorf(failed, err)
		}
		secrets = append(secrets, secret)
		return nil
	}
	if ref := obj.Spec.SecretRef; ref != nil {
		if err := add(ref.Name, "failed to get secret '"+obj.Namespace+"/"+ref.Name+"': %w"); err != nil {
			return nil, err
		}
	}
	names, err := r.imagePullSecrets(obj, p)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		failed := "failed to get image pull secret for serviceaccount '" + obj.Namespace + "/" + obj.Spec.ServiceAccountName + "': %w"
		if err := add(name, failed); err != nil {
			return nil, inFluxWords(err, "secret", obj.Namespace, name, failed)
		}
	}
	p.logins, p.warnings, err = auth.NewPullSecrets(secrets)
	return p, err
}

func (r *Reconciler) imagePullSecrets(obj *sourcev1.OCIRepository, p *pulled) ([]string, error) {
	name := obj.Spec.ServiceAccountName
	if name == "" {
		return nil, nil // not even those of the namespace's default account
	}
	account, err := r.inventory.ServiceAccount(obj.Namespace, name)
	switch {
	case r.forgiven(err):
		p.named, p.missing = true, true
		return nil, nil
	case err != nil:
		return nil, inFluxWords(err, "serviceaccount", obj.Namespace, name, "%w")
	}
	return account.ImagePullSecrets, nil
}

// forgiven reports whether --missing-secrets lets the run go on.
func (r *Reconciler) forgiven(err error) bool {
	var missing *manifest.NotFoundError
	return errors.As(err, &missing) && r.o.MissingSecrets != MissingSecretsFail && r.o.MissingSecrets != ""
}

// inFluxWords says that an object is missing as Flux does, where it does not say
// so in the API server's words.
func inFluxWords(err error, what, namespace, name, format string) error {
	var missing *manifest.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	return fmt.Errorf(format, &absentError{fmt.Sprintf("%s '%s/%s' not found", what, namespace, name), missing})
}

type absentError struct {
	text string
	err  *manifest.NotFoundError
}

func (e *absentError) Error() string { return e.text }

func (e *absentError) Unwrap() error { return e.err }

// Hint says where else something like it was seen.
func (e *absentError) Hint() string { return e.err.Hint() }

// missingLoginEvent is the event of a Secret that is not there.
func (p *reconciliation) missingLoginEvent(obj *sourcev1.OCIRepository, err error) {
	var missing *manifest.NotFoundError
	if obj.Spec.SecretRef == nil || !errors.As(err, &missing) || missing.Name != obj.Spec.SecretRef.Name {
		return
	}
	p.out.Events = append(p.out.Events, status.Event{
		Reason: status.AuthenticationFailed, Message: "auth secret '" + missing.Name + "' not found",
	})
}

// ociLogins decides which credentials the registry may be shown: those of the
// Secrets, else those of the cloud that the object names, else the user's own.
// Secrets without any login are none: Flux would ask no cloud then.
func (r *Reconciler) ociLogins(ctx context.Context, obj *sourcev1.OCIRepository, to auth.Route, pull *pulled) (auth.Logins, error) {
	provider := obj.Spec.Provider
	switch cloud := provider != "" && provider != sourcev1.GenericOCIProvider; {
	case pull.logins != nil:
		return pull.logins, nil
	case cloud && !pull.missing && obj.Spec.ServiceAccountName != "":
		return nil, status.FeatureGateDisabled.Wrap(featureGateError{})
	case cloud && !pull.missing:
		logins, err := r.machineLogins(ctx, provider, to)
		if err != nil {
			return nil, status.AuthenticationFailed.Wrap(fmt.Errorf("failed to get credential from %s: %w", provider, err))
		}
		return logins, nil
	case pull.missing && r.o.MissingSecrets == MissingSecretsAmbient, !pull.named && r.o.Ambient:
		return r.logins.ambient(), nil
	case len(pull.warnings) > 0:
		return auth.StaticLogin{Problem: errors.New(pull.warnings[0])}, nil
	}
	return nil, nil
}

// featureGateError is a ServiceAccount with whose identity the object is to log in
// to a cloud, which only a cluster knows.
type featureGateError struct{}

func (featureGateError) Error() string {
	return "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity feature gate in the controller"
}

// Hint says what there is instead.
func (featureGateError) Hint() string {
	return "here a cloud knows this machine, and no ServiceAccounts: without spec.serviceAccountName its identity is used, and a Secret of spec.secretRef or an imagePullSecret of the account comes first"
}

// ociProxy is what spec.proxySecretRef names, nil for no reference.
func (r *Reconciler) ociProxy(obj *sourcev1.OCIRepository) (*fetch.Proxy, error) {
	secret, err := r.secret(obj.Namespace, obj.Spec.ProxySecretRef, "failed to get secret")
	if err != nil || secret == nil {
		return nil, err
	}
	return fetch.NewProxy(secretName(secret), secret.Data)
}

// ociCertificates are the TLS settings. Where plain HTTP would do and no
// certificate is named, none is looked at.
func (r *Reconciler) ociCertificates(obj *sourcev1.OCIRepository) (identity *auth.Identity, warnings []string, err error) {
	ref := obj.Spec.CertSecretRef
	switch {
	case ref == nil && obj.Spec.Insecure:
		return identity.Unverified(), nil, nil
	case ref == nil:
		return nil, nil, nil
	}
	secret, err := r.inventory.Secret(obj.Namespace, ref.Name)
	if err != nil {
		return nil, nil, inFluxWords(err, "secret", obj.Namespace, ref.Name, "%w")
	}
	return auth.FromCertificates(secret)
}

// schemeKey names a registry, and the settings that it is asked with.
type schemeKey struct{ host, settings string }

// plainHTTP reports whether the registry is spoken to without TLS. That is only
// asked where it is allowed, once per registry.
func (r *Reconciler) plainHTTP(ctx context.Context, obj *sourcev1.OCIRepository, name oci.Name, o oci.Options) (bool, error) {
	if !obj.Spec.Insecure && !name.Loopback() {
		return false, nil
	}
	key := schemeKey{name.Host(), o.Identity.Key() + " " + o.Proxy.Key()}
	return r.plain.Do(ctx, key, func() (bool, error) { return r.registries.PlainHTTP(ctx, name, o) })
}
