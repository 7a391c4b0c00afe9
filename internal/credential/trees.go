package credential

import (
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/bucket"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Git reads the Secret of a GitRepository. It returns nil without a reference.
func (r *Reader) Git(obj *sourcev1.GitRepository) (*git.Login, error) {
	provider := obj.Spec.Provider
	app := provider == sourcev1.GitProviderGitHub
	switch {
	case app && obj.Spec.SecretRef == nil:
		return nil, providerError(noAppData, makeAppData, true)
	case provider != "" && provider != sourcev1.GitProviderGeneric && !app:
		return nil, fmt.Errorf("failed to configure authentication options: %w", fetch.NotSupported("provider "+provider+" of a GitRepository"))
	}
	secret, err := r.Secret(obj.Namespace, obj.Spec.SecretRef, "failed to get secret")
	if !app && r.Forgives(err) {
		return nil, nil // no program leaves logins for Git that would be used here
	}
	if err != nil || secret == nil {
		return nil, err
	}
	name := NameOf(secret)
	switch {
	case app && !hasGitHubApp(secret.Data):
		return nil, providerError(noAppData, makeAppData, false)
	case !app && hasGitHubApp(secret.Data):
		return nil, providerError("secretRef '"+name+"' has github app data but provider is not set to github", "spec.provider should be github", false)
	}
	login, err := gitLogin(obj.Spec.URL, name, secret.Data, app)
	if err != nil {
		return nil, fmt.Errorf("failed to configure authentication options: %w", err)
	}
	return login, nil
}

const (
	noAppData   = "secretRef with github app data must be specified when provider is set to github"
	makeAppData = "'flux create secret githubapp' makes such a Secret"
)

// A ProviderError reports a provider of a GitRepository that does not fit the Secret.
type ProviderError struct {
	finding.Problem
	Stalled bool // a later Secret cannot change that
}

func providerError(text, hint string, stalled bool) error {
	return &ProviderError{finding.Problem{Code: finding.IncompleteLogin, Text: text, Advice: hint}, stalled}
}

// GitKeys returns the PGP keys for the revisions of a GitRepository, nil without spec.verify.
func (r *Reader) GitKeys(obj *sourcev1.GitRepository) (map[string][]byte, error) {
	if obj.Spec.Verification == nil {
		return nil, nil
	}
	secret, err := r.Secret(obj.Namespace, &obj.Spec.Verification.SecretRef, "PGP public keys secret error: failed to get secret")
	if err != nil {
		return nil, trusted(err)
	}
	return secret.Data, nil
}

// Bucket reads the Secret of a Bucket, nil without a reference, and reports whether the identity of the machine may
// replace it.
func (r *Reader) Bucket(obj *sourcev1.Bucket) (login *bucket.Login, ambient bool, err error) {
	secret, err := r.Secret(obj.Namespace, obj.Spec.SecretRef, "failed to get secret")
	switch {
	case r.Forgives(err):
		return nil, r.o.Missing == MissingAmbient, nil
	case err != nil || secret == nil:
		return nil, r.o.Ambient, err
	}
	login, err = bucketLogin(obj.Spec.Provider, obj.Spec.Endpoint, secret.Name, secret.Data)
	return login, r.o.Ambient, finding.WithCode(finding.IncompleteLogin, err)
}

// BucketCertificates returns the TLS settings of a certSecretRef of a Bucket. Without a reference they are empty.
func (r *Reader) BucketCertificates(namespace string, ref *meta.LocalObjectReference) (*auth.Identity, error) {
	cert, err := r.Secret(namespace, ref, "failed to get TLS authentication secret")
	if err != nil {
		return nil, err
	}
	identity, _, err := auth.FromSecrets(nil, cert)
	return r.tls(identity), err
}

// STS returns the settings of spec.sts of a Bucket, or nil without it.
func (r *Reader) STS(obj *sourcev1.Bucket) (*bucket.STS, error) {
	sts := obj.Spec.STS
	if sts == nil {
		return nil, nil
	}
	secret, err := r.Secret(obj.Namespace, sts.SecretRef, "failed to get STS secret")
	if err != nil {
		return nil, err
	}
	identity, err := r.BucketCertificates(obj.Namespace, sts.CertSecretRef)
	if err != nil {
		return nil, err
	}
	login, wrong := ldapLogin(sts.Provider, secret)
	made, err := bucket.NewSTS(sts.Endpoint, login, identity)
	if err == nil && wrong != nil {
		made, err = nil, wrong
	}
	return made, finding.WithCode(finding.IncompleteLogin, err)
}

// Proxy returns the proxy of the proxySecretRef of a GitRepository or a Bucket, nil without a reference.
func (r *Reader) Proxy(namespace string, ref *meta.LocalObjectReference) (*auth.Proxy, error) {
	secret, err := r.Secret(namespace, ref, "failed to get proxy secret")
	if err != nil || secret == nil {
		return nil, err
	}
	proxy, err := auth.NewProxy(NameOf(secret), secret.Data)
	if err != nil {
		return nil, finding.WithCode(finding.ProxySecret, fmt.Errorf("failed to configure proxy options: %w", err))
	}
	return proxy, nil
}

// ArtifactProxy returns the proxy of the proxySecretRef of an OCIRepository, nil without a reference.
func (r *Reader) ArtifactProxy(obj *sourcev1.OCIRepository) (*auth.Proxy, error) {
	secret, err := r.Secret(obj.Namespace, obj.Spec.ProxySecretRef, "failed to get secret")
	if err != nil || secret == nil {
		return nil, err
	}
	proxy, err := auth.NewProxy(NameOf(secret), secret.Data)
	return proxy, finding.WithCode(finding.ProxySecret, err)
}

// trustedRootKey is the name of a trusted root in a Secret. Flux knows it from
// OCIRepositories only.
const trustedRootKey = "trusted_root.json"

// TrustedRoot returns the content of a trusted root in a Secret, nil for no reference.
func (r *Reader) TrustedRoot(namespace string, ref *meta.LocalObjectReference) ([]byte, error) {
	if ref == nil {
		return nil, nil
	}
	name := namespace + "/" + ref.Name
	secret, err := r.lookup.Secret(namespace, ref.Name)
	if err != nil {
		return nil, trusted(fmt.Errorf("failed to read trusted root from secret '%s': %w", name, err))
	}
	root, ok := RootIn(secret)
	if !ok {
		return nil, fmt.Errorf("failed to read trusted root from secret '%s': '%s' not found in secret '%s'", name, trustedRootKey, name)
	}
	return root, nil
}

// RootIn returns the trusted root in a Secret, or false if the Secret has no root.
func RootIn(secret *manifest.Secret) ([]byte, bool) {
	root, ok := secret.Data[trustedRootKey]
	return root, ok
}

// Keys returns the Secret with the keys of a verification, nil for no reference.
func (r *Reader) Keys(namespace string, ref *meta.LocalObjectReference) (*manifest.Secret, error) {
	if ref == nil {
		return nil, nil
	}
	secret, err := r.lookup.Secret(namespace, ref.Name)
	return secret, trusted(err)
}

// trusted marks the error of a missing Secret on which a verification depends. Such keys are not secret, but without
// them it is not known who is trusted.
func trusted(err error) error {
	var missing *manifest.NotFoundError
	if errors.As(err, &missing) && missing.Kind == "Secret" && !missing.InCluster {
		return finding.WithCode(finding.MissingKeys, err)
	}
	return err
}
