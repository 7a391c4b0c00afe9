package validate

import (
	"errors"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/bucket"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func (v *validation) gitRepository(obj *sourcev1.GitRepository) {
	if _, err := v.secrets.Git(obj); !bootstrapped(obj) || !is[*manifest.NotFoundError](err) {
		v.supported(err, "spec", "secretRef", "name")
	}
	v.loginInURL(obj.Spec.URL)
	v.reference(obj.Spec.Reference)
	_, err := v.secrets.Proxy(obj.Namespace, obj.Spec.ProxySecretRef)
	v.fail(finding.ProxySecret, err, "spec", "proxySecretRef", "name")
	_, err = v.secrets.GitKeys(obj)
	v.fail(finding.MissingKeys, err, "spec", "verify", "secretRef", "name")
	for i, include := range obj.Spec.Include {
		name := include.GitRepositoryRef.Name
		path := []any{"spec", "include", i, "repository", "name"}
		if _, err := v.inv.Find(sourcev1.GitRepositoryKind, obj.Namespace, name); err != nil {
			v.fail(finding.MissingSource, &inventory.UnavailableError{Kind: sourcev1.GitRepositoryKind, Name: name, Err: err}, path...)
			continue
		}
		v.fail(finding.DependencyCycle, v.inv.IncludeCycle(obj.Namespace, obj.Name, name), path...)
	}
}

// bootstrapped reports whether flux bootstrap wrote an object: the source, its namespace and its Secret have the
// same name, and the Secret exists in the cluster only.
func bootstrapped(obj *sourcev1.GitRepository) bool {
	ref := obj.Spec.SecretRef
	return ref != nil && ref.Name == obj.Name && obj.Name == obj.Namespace
}

// ofInstance reports whether the Flux operator makes an object from an instance: it is the source that the cluster begins with.
func ofInstance(obj *manifest.Object) bool {
	from := obj.Origin
	return from != nil && from.Group() == manifest.OperatorGroup && from.Kind == "FluxInstance"
}

// Home reports whether an object is the source from which its cluster reads this repository, with a login that is
// in the cluster only: flux bootstrap, or the Flux operator, put the Secret there.
func Home(adm *admission.Admitted, set *manifest.Set) bool {
	git, _ := adm.Typed.(*sourcev1.GitRepository)
	if !ofInstance(adm.Object) && (git == nil || !bootstrapped(git)) {
		return false
	}
	name := manifest.At[string](adm.Content, "spec", "secretRef", "name")
	if name == "" {
		return false
	}
	_, err := set.Secret(adm.Object.Namespace, name)
	return is[*manifest.NotFoundError](err)
}

func (v *validation) bucket(obj *sourcev1.Bucket) {
	err := bucket.Check(bucket.Options{
		Provider: obj.Spec.Provider, Bucket: obj.Spec.BucketName, Endpoint: obj.Spec.Endpoint, Insecure: obj.Spec.Insecure, Region: obj.Spec.Region,
	})
	v.fail(finding.InvalidURL, err, "spec", "endpoint")
	_, _, err = v.secrets.Bucket(obj)
	v.fail(finding.IncompleteLogin, err, "spec", "secretRef", "name")
	_, err = v.secrets.BucketCertificates(obj.Namespace, obj.Spec.CertSecretRef)
	v.fail(finding.BrokenTLS, err, "spec", "certSecretRef", "name")
	_, err = v.secrets.Proxy(obj.Namespace, obj.Spec.ProxySecretRef)
	v.fail(finding.ProxySecret, err, "spec", "proxySecretRef", "name")
	_, err = v.secrets.STS(obj)
	v.fail(finding.IncompleteLogin, err, "spec", "sts")
	if obj.Spec.ServiceAccountName != "" {
		v.fail(finding.ServiceAccount, credential.ErrAccount, "spec", "serviceAccountName")
	}
}

// supported reports an error of a login. A login that Flux supports and this program does not is only a
// warning: the manifest is valid.
func (v *validation) supported(err error, path ...any) {
	var unsupported *fetch.NotSupportedError
	if errors.As(err, &unsupported) {
		v.warn(finding.UnsupportedProvider, unsupported.Error(), "spec", "provider")
		return
	}
	v.fail(finding.IncompleteLogin, err, path...)
}

// reference checks spec.ref, and warns of fields that another field overrides.
func (v *validation) reference(ref *sourcev1.GitRepositoryRef) {
	if ref == nil {
		return
	}
	if ref.SemVer != "" && ref.Commit == "" && ref.Name == "" {
		err := resolve.ValidateVersion(ref.SemVer)
		v.fail(finding.MalformedVersion, err, "spec", "ref", "semver")
		if err == nil {
			v.tagRange(ref.SemVer)
		}
	}
	fields := []struct{ name, value string }{
		{"commit", ref.Commit}, {"name", ref.Name}, {"semver", ref.SemVer}, {"tag", ref.Tag}, {"branch", ref.Branch},
	}
	counts := ""
	for _, f := range fields {
		switch {
		case f.value == "":
		case counts == "":
			counts = f.name
		case counts == "commit" && f.name == "branch": // where to look for the commit
		default:
			v.warn(finding.UselessSetting, "spec.ref."+f.name+" has no effect beside spec.ref."+counts, "spec", "ref", f.name)
		}
	}
}
