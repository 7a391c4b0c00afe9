package reconcile

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/verify"
)

func (v *validation) ociRepository(obj *sourcev1.OCIRepository) {
	name, err := ociName(obj)
	v.fail(finding.InvalidURL, unwrapped(err), "spec", "url")
	v.loginInURL(obj.Spec.URL)
	v.ociReference(obj)
	v.ociLayer(obj.GetLayerMediaType())
	v.ociLogin(obj, name, err == nil)
	r := &Reconciler{inventory: v.inv}
	_, err = r.ociProxy(obj)
	v.fail(finding.ProxySecret, err, "spec", "proxySecretRef", "name")
	_, odd, err := r.ociCertificates(obj)
	v.fail(finding.BrokenTLS, err, "spec", "certSecretRef", "name")
	for _, w := range odd {
		v.warn(finding.OddSecret, w, "spec", "certSecretRef", "name")
	}
	if obj.Spec.Insecure && obj.Spec.CertSecretRef != nil {
		v.warn(finding.UselessSetting, "spec.insecure: true lets the registry be reached without TLS, although spec.certSecretRef names certificates", "spec", "insecure")
	}
	v.ociVerification(obj)
}

// ociReference judges the one field of spec.ref that counts.
func (v *validation) ociReference(obj *sourcev1.OCIRepository) {
	switch ref := ociRef(obj); {
	case ref.Digest != "":
		_, err := oci.ParseDigest(ref.Digest)
		v.fail(finding.InvalidReference, err, "spec", "ref", "digest")
	case ref.SemVer != "":
		_, err := resolve.NewTagRange(ref.SemVer, "", false)
		v.fail(finding.MalformedVersion, err, "spec", "ref", "semver")
		if err == nil {
			v.tagRange(ref.SemVer)
		}
		_, err = resolve.NewTagRange("*", ref.SemverFilter, false)
		v.fail(finding.InvalidExpression, err, "spec", "ref", "semverFilter")
	case ref.Tag == "" || ref.Tag == "latest":
		v.warn(finding.UnpinnedVersion, "the tag latest is whatever was published last", "spec", "ref", "tag")
	default:
		v.fail(finding.InvalidReference, oci.CheckTag(ref.Tag), "spec", "ref", "tag")
	}
}

// ociLayer finds media types that no layer has.
func (v *validation) ociLayer(mediaType string) {
	path := []any{"spec", "layerSelector", "mediaType"}
	if mediaType == "" {
		return
	}
	parsed, params, err := mime.ParseMediaType(mediaType)
	switch near, ok := manifest.Nearest(mediaType, knownLayers()); {
	case err != nil || !strings.Contains(parsed, "/") || len(params) > 0:
		v.warn(finding.OddMediaType, fmt.Sprintf("%q is not a media type, so no layer has it", mediaType), path...)
	case strings.Contains(mediaType, ".config."):
		v.warn(finding.OddMediaType, fmt.Sprintf("%s is the media type of a config, which is no layer", mediaType), path...)
	case ok && near != mediaType:
		v.warn(finding.OddMediaType, fmt.Sprintf("no layer may have the media type %s: did you mean %s?", mediaType, near), path...)
	}
}

// knownLayers are the media types of layers that Helm and Flux push.
func knownLayers() []string {
	return []string{
		oci.HelmChartType, "application/vnd.cncf.helm.chart.provenance.v1.prov", "application/vnd.cncf.flux.content.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar",
	}
}

// ociLogin judges each reference to logins by itself, and then whether any of them
// is for the registry.
func (v *validation) ociLogin(obj *sourcev1.OCIRepository, name oci.Name, known bool) {
	r := &Reconciler{inventory: v.inv}
	r.o.MissingSecrets = MissingSecretsFail
	bySecret, byAccount := obj.DeepCopy(), obj.DeepCopy()
	bySecret.Spec.ServiceAccountName, byAccount.Spec.SecretRef = "", nil
	one, err := r.pullSecrets(bySecret)
	v.fail(finding.NoRegistryLogin, err, "spec", "secretRef", "name")
	v.told(one, "spec", "secretRef", "name")
	other, failed := r.pullSecrets(byAccount)
	v.fail(finding.ServiceAccount, failed, "spec", "serviceAccountName")
	v.told(other, "spec", "serviceAccountName")
	all, broken := r.pullSecrets(obj)
	if err != nil || failed != nil || broken != nil || !known {
		return
	}
	if cloud := obj.Spec.Provider != "" && obj.Spec.Provider != sourcev1.GenericOCIProvider; cloud && all.logins == nil && obj.Spec.ServiceAccountName != "" {
		v.fail(finding.ServiceAccount, featureGateError{}, "spec", "serviceAccountName")
	}
	if all.logins == nil {
		return
	}
	login, err := all.logins.Login(context.Background(), name.Host(), name.Path())
	v.fail(finding.NoRegistryLogin, err, "spec")
	if login.Problem != nil {
		v.warn(finding.OddSecret, login.Problem.Error(), "spec")
	}
}

func (v *validation) told(p *pulled, path ...any) {
	if p == nil {
		return
	}
	for _, w := range p.warnings {
		v.warn(finding.OddSecret, w, path...)
	}
}

func (v *validation) ociVerification(obj *sourcev1.OCIRepository) {
	spec := obj.Spec.Verify
	if spec == nil {
		return
	}
	for i, id := range spec.MatchOIDCIdentity {
		_, err := regexp.Compile(id.Issuer)
		v.fail(finding.InvalidExpression, err, "spec", "verify", "matchOIDCIdentity", i, "issuer")
		_, err = regexp.Compile(id.Subject)
		v.fail(finding.InvalidExpression, err, "spec", "verify", "matchOIDCIdentity", i, "subject")
	}
	r := &Reconciler{inventory: v.inv}
	if spec.Provider == providerCosign {
		root, err := r.trustedRoot(obj.Namespace, spec.TrustedRootSecretRef)
		if root != nil {
			_, err = verify.TrustedRoot(root)
		}
		if root != nil && spec.SecretRef == nil {
			v.anyone(err, spec.MatchOIDCIdentity)
		}
		v.fail(finding.NoVerificationKeys, ofVerification(err), "spec", "verify", "trustedRootSecretRef", "name")
	}
	secret, err := r.secret(obj.Namespace, spec.SecretRef, "failed to get verification secret")
	v.fail(finding.MissingKeys, ofVerification(err), "spec", "verify", "secretRef", "name")
	if secret != nil {
		v.verificationSecret(spec.Provider, spec.MatchOIDCIdentity, secret)
	}
	if spec.Provider != providerCosign && spec.SecretRef == nil {
		v.fail(finding.NoVerificationInput, errors.New("notation needs spec.verify.secretRef: a Secret with trustpolicy.json and certificates"), "spec", "verify")
	}
}
