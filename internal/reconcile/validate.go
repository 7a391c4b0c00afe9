package reconcile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// Finding is a mistake in an object that shows without a network.
type Finding struct {
	Pos     manifest.Pos
	Err     error
	Warning bool
}

// Validate judges what an object refers to, and the values that only a
// controller looks at. Nothing is read but the input.
func (inv *Inventory) Validate(adm *admission.Admitted) []Finding {
	v := &validation{inv: inv, adm: adm}
	switch obj := adm.Typed.(type) {
	case *sourcev1.HelmRepository:
		v.helmRepository(obj)
	case *sourcev1.GitRepository:
		v.gitRepository(obj)
	case *sourcev1.Bucket:
		v.bucket(obj)
	case *sourcev1.OCIRepository:
		v.ociRepository(obj)
	case *sourcev1.HelmChart:
		v.helmChart(obj)
	}
	return v.findings
}

type validation struct {
	inv      *Inventory
	adm      *admission.Admitted
	findings []Finding
}

func (v *validation) fail(err error, path ...any) {
	if err != nil {
		v.findings = append(v.findings, Finding{Pos: v.adm.Object.Position(path...), Err: err})
	}
}

func (v *validation) warn(text string, path ...any) {
	v.findings = append(v.findings, Finding{Pos: v.adm.Object.Position(path...), Err: errors.New(text), Warning: true})
}

func (v *validation) helmRepository(obj *sourcev1.HelmRepository) {
	oci := obj.Spec.Type == sourcev1.HelmRepositoryTypeOCI
	switch {
	case oci:
		v.fail(unwrapped(checkRegistryURL(obj)), "spec", "url")
	case strings.HasPrefix(obj.Spec.URL, sourcev1.HelmRepositoryTypeOCI+"://"):
		v.fail(&schemeTypeError{}, "spec", "url")
	default:
		v.httpURL(obj.Spec.URL)
	}
	v.repositorySecrets(obj, oci)
}

func (v *validation) httpURL(raw string) {
	normal, err := fetch.NormalizeURL(raw)
	if err != nil {
		v.fail(invalidURL(err), "spec", "url")
		return
	}
	if _, err := fetch.NewClient(fetch.Config{}).HTTP(normal, nil, fetch.HTTPOptions{}); err != nil {
		v.fail(unwrapped(clientFailure(err)), "spec", "url")
	}
}

func (v *validation) repositorySecrets(obj *sourcev1.HelmRepository, oci bool) {
	r := &Reconciler{inventory: v.inv}
	cert, err := r.secret(obj.Namespace, obj.Spec.CertSecretRef, "failed to get TLS authentication secret")
	v.fail(err, "spec", "certSecretRef", "name")
	secret, err := r.secret(obj.Namespace, obj.Spec.SecretRef, "failed to get authentication secret")
	v.fail(err, "spec", "secretRef", "name")
	login := secret
	if oci {
		login = withoutLogin(secret)
	}
	_, warnings, err := auth.FromSecrets(login, cert)
	v.fail(err, "spec")
	for _, w := range warnings {
		v.warn(w, "spec")
	}
	if oci && err == nil {
		v.registryLogin(obj, secret)
	}
	if secret != nil && !oci && err == nil && len(secret.Data["username"]) == 0 && !hasTLS(secret) {
		v.warn("Secret "+secret.Namespace+"/"+secret.Name+" has neither 'username' and 'password' nor TLS keys, so it has no effect", "spec", "secretRef", "name")
	}
}

// registryLogin judges the URL of a registry, and whether the Secret has a login
// for that host.
func (v *validation) registryLogin(obj *sourcev1.HelmRepository, secret *manifest.Secret) {
	if checkRegistryURL(obj) != nil {
		return // told already
	}
	registry, err := fetch.NewClient(fetch.Config{}).OCI(obj.Spec.URL, fetch.OCIOptions{})
	if err != nil {
		v.fail(fmt.Errorf("failed to construct Helm client: %w", err), "spec", "url")
		return
	}
	if secret == nil {
		return
	}
	if _, err := auth.RegistrySecret(secret, registry.Host()); err != nil {
		v.fail(fmt.Errorf("failed to configure OCI registry authentication: %w", err), "spec", "secretRef", "name")
	}
}

func hasTLS(secret *manifest.Secret) bool {
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key", "caFile", "certFile", "keyFile"} {
		if len(secret.Data[key]) > 0 {
			return true
		}
	}
	return false
}

func (v *validation) helmChart(obj *sourcev1.HelmChart) {
	ref := obj.Spec.SourceRef
	source, err := v.inv.Find(ref.Kind, obj.Namespace, ref.Name)
	if err != nil {
		v.fail(&unavailableError{ref.Kind, ref.Name, err}, "spec", "sourceRef", "name")
	}
	if ref.Kind == sourcev1.HelmRepositoryKind {
		v.fail(resolve.ValidateName(obj.Spec.Chart), "spec", "chart")
		v.fail(resolve.ValidateVersion(obj.Spec.Version), "spec", "version")
	}
	v.verification(obj, source)
}

func (v *validation) verification(obj *sourcev1.HelmChart, source *admission.Admitted) {
	spec := obj.Spec.Verify
	if spec == nil {
		return
	}
	if source != nil {
		if repo, ok := source.Typed.(*sourcev1.HelmRepository); ok && repo.Spec.Type != sourcev1.HelmRepositoryTypeOCI {
			v.fail(errors.New("spec.verify works only with charts from OCI registries: the source is an HTTP repository"), "spec", "verify")
		}
	}
	for i, id := range spec.MatchOIDCIdentity {
		_, err := regexp.Compile(id.Issuer)
		v.fail(err, "spec", "verify", "matchOIDCIdentity", i, "issuer")
		_, err = regexp.Compile(id.Subject)
		v.fail(err, "spec", "verify", "matchOIDCIdentity", i, "subject")
	}
	r := &Reconciler{inventory: v.inv}
	secret, err := r.secret(obj.Namespace, spec.SecretRef, "failed to get verification secret")
	v.fail(err, "spec", "verify", "secretRef", "name")
	if secret != nil {
		v.fail(verificationKeys(spec.Provider, secret), "spec", "verify", "secretRef", "name")
	}
	if spec.Provider == "notation" && spec.SecretRef == nil {
		v.fail(errors.New("notation needs spec.verify.secretRef: a Secret with trustpolicy.json and certificates"), "spec", "verify")
	}
}

// verificationKeys tells what a verification Secret lacks.
func verificationKeys(provider string, secret *manifest.Secret) error {
	name := secretName(secret)
	if provider != providerCosign {
		_, _, err := verify.NotationSecret(name, secret.Data)
		return err
	}
	_, err := verify.CosignKeys(name, secret.Data)
	if root, ok := secret.Data[trustedRootKey]; ok && err != nil {
		_, err = verify.TrustedRoot(root)
	}
	return err
}

// unwrapped drops the reason from an error: a finding has no conditions.
func unwrapped(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// HasNoStatus tells whether an object has no status by design.
func HasNoStatus(obj *manifest.Object) bool {
	k, ok := kindOfObject(obj)
	if !ok || k.static == nil {
		return false
	}
	adm, err := admission.Admit(obj)
	return err == nil && k.static(adm.Typed)
}
