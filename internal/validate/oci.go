package validate

import (
	"context"
	"fmt"
	"mime"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/verify"
)

func (v *validation) ociRepository(obj *sourcev1.OCIRepository) {
	name, err := ArtifactURL(obj)
	v.fail(finding.InvalidURL, err, "spec", "url")
	v.loginInURL(obj.Spec.URL)
	v.ociReference(obj)
	v.ociLayer(obj.GetLayerMediaType())
	v.ociLogin(obj, name, err == nil)
	_, err = v.secrets.ArtifactProxy(obj)
	v.fail(finding.ProxySecret, err, "spec", "proxySecretRef", "name")
	_, warned, err := v.secrets.Certificates(obj, obj.Spec.Insecure)
	v.fail(finding.BrokenTLS, err, "spec", "certSecretRef", "name")
	v.references(nil, warned)
	if obj.Spec.Insecure && obj.Spec.CertSecretRef != nil {
		v.warn(finding.UselessSetting, "spec.insecure: true lets the registry be reached without TLS, although spec.certSecretRef names certificates", "spec", "insecure")
	}
	v.ociVerification(obj)
}

// ociReference checks the field of spec.ref that takes precedence.
func (v *validation) ociReference(obj *sourcev1.OCIRepository) {
	v.emptyRange("spec", "ref", "semver")
	switch ref := ArtifactReference(obj); {
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
		if resolve.IsRange(ref.Tag) {
			v.misread(fmt.Sprintf("%q is taken as the name of one tag", ref.Tag), "a range belongs in spec.ref.semver", "spec", "ref", "tag")
		}
	}
}

// emptyRange warns of a range such as >6 or !=6 without quotes: in YAML they begin a block of text and a tag, and the field is empty.
func (v *validation) emptyRange(path ...any) {
	text, isText := manifest.ValueAt(v.adm.Object.Content, path).(string)
	if !isText || strings.TrimSpace(text) != "" {
		return
	}
	e := v.adm.Object.Excerpt(path...)
	_, written, _ := strings.Cut(e.Before+e.Marked+e.After, fmt.Sprint(path[len(path)-1], ":"))
	written = strings.TrimSpace(written)
	begins := map[string]string{">": "a block of text", "!": "a tag"}
	if written == "" || begins[written[:1]] == "" {
		return
	}
	v.misread(fmt.Sprintf("%s begins %s in YAML, so the field is empty and any version matches", written[:1], begins[written[:1]]),
		fmt.Sprintf("put the value in quotes: %s: %q", path[len(path)-1], written), path...)
}

// misread warns of a version that is valid, but has another meaning than its author probably thinks.
func (v *validation) misread(text, hint string, path ...any) {
	f := At(v.adm.Object, finding.UnpinnedVersion, text, []string{hint}, path...)
	f.Severity = finding.Warning
	v.findings = append(v.findings, f)
}

// ociLayer warns of media types that layers do not have.
func (v *validation) ociLayer(mediaType string) {
	path := []any{"spec", "layerSelector", "mediaType"}
	if mediaType == "" {
		return
	}
	parsed, params, err := mime.ParseMediaType(mediaType)
	switch near, ok := finding.Nearest(mediaType, knownLayers()); {
	case err != nil || !strings.Contains(parsed, "/") || len(params) > 0:
		v.warn(finding.OddMediaType, fmt.Sprintf("%q is not a media type, so no layer has it", mediaType), path...)
	case strings.Contains(mediaType, ".config."):
		v.warn(finding.OddMediaType, fmt.Sprintf("%s is the media type of a config, not of a layer", mediaType), path...)
	case ok && near != mediaType:
		v.warn(finding.OddMediaType, fmt.Sprintf("no layer may have the media type %s: did you mean %s?", mediaType, near), path...)
	}
}

// knownLayers returns the media types of layers that Helm and Flux push.
func knownLayers() []string {
	return []string{
		oci.HelmChartType, oci.HelmProvenanceType, "application/vnd.cncf.flux.content.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar",
	}
}

// ociLogin checks the references to logins, and then whether one of them is for the registry.
func (v *validation) ociLogin(obj *sourcev1.OCIRepository, name oci.Name, known bool) {
	login := v.secrets.Artifact(obj)
	v.references(login.Problems, login.Warnings)
	if login.Err() != nil || !known {
		return
	}
	problem, warned := login.Check(context.Background(), name.Host(), name.Path())
	if problem != nil {
		v.fail(finding.NoRegistryLogin, problem.Err, problem.Path...)
	}
	if warned != nil {
		v.references(nil, []credential.Warning{*warned})
	}
}

func (v *validation) ociVerification(obj *sourcev1.OCIRepository) {
	spec := obj.Spec.Verify
	if spec == nil {
		return
	}
	v.identities(spec.MatchOIDCIdentity)
	if spec.Provider == providerCosign {
		root, err := v.secrets.TrustedRoot(obj.Namespace, spec.TrustedRootSecretRef)
		if root != nil {
			_, err = verify.TrustedRoot(root)
		}
		if root != nil && spec.SecretRef == nil {
			v.anyone(err, spec.MatchOIDCIdentity)
		}
		v.fail(finding.NoVerificationKeys, err, "spec", "verify", "trustedRootSecretRef", "name")
	}
	v.keys(obj.Namespace, spec.Provider, spec.SecretRef, spec.MatchOIDCIdentity)
}
