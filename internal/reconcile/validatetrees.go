package reconcile

import (
	"errors"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

func (v *validation) gitRepository(obj *sourcev1.GitRepository) {
	r := &Reconciler{inventory: v.inv}
	_, err := r.gitLogin(obj)
	v.supported(err, "spec", "secretRef", "name")
	_, err = r.proxy(obj.Namespace, obj.Spec.ProxySecretRef)
	v.fail(err, "spec", "proxySecretRef", "name")
	_, err = r.gitVerify(obj)
	v.fail(unwrapped(err), "spec", "verify", "secretRef", "name")
	for i, include := range obj.Spec.Include {
		name := include.GitRepositoryRef.Name
		adm, err := v.inv.Find(sourcev1.GitRepositoryKind, obj.Namespace, name)
		switch {
		case err != nil:
			v.fail(&unavailableError{sourcev1.GitRepositoryKind, name, err}, "spec", "include", i, "repository", "name")
		case v.inv.includesItself(obj.Namespace, obj.Name, adm):
			v.fail(&includeCycleError{}, "spec", "include", i, "repository", "name")
		}
	}
}

func (v *validation) bucket(obj *sourcev1.Bucket) {
	r := &Reconciler{inventory: v.inv}
	err := fetch.CheckBucket(fetch.BucketOptions{
		Provider: obj.Spec.Provider, Bucket: obj.Spec.BucketName, Endpoint: obj.Spec.Endpoint, Insecure: obj.Spec.Insecure, Region: obj.Spec.Region,
	})
	v.fail(err, "spec", "endpoint")
	_, err = r.bucketLogin(obj)
	v.fail(err, "spec", "secretRef", "name")
	_, err = r.certificates(obj.Namespace, obj.Spec.CertSecretRef)
	v.fail(err, "spec", "certSecretRef", "name")
	_, err = r.proxy(obj.Namespace, obj.Spec.ProxySecretRef)
	v.fail(err, "spec", "proxySecretRef", "name")
	_, err = r.bucketSTS(obj)
	v.fail(err, "spec", "sts")
}

// supported only warns of what Flux can do and this program cannot yet: nothing
// is wrong with the manifest.
func (v *validation) supported(err error, path ...any) {
	var unsupported *fetch.NotSupportedError
	if errors.As(err, &unsupported) {
		v.warn(unsupported.Error(), "spec", "provider")
		return
	}
	v.fail(err, path...)
}
