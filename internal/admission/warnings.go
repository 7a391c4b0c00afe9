package admission

import (
	"cmp"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/operator"
)

func (r *review) warnAt(code finding.Code, field, format string, args ...any) {
	path := pathOf(r.obj.Content, field)
	r.found = append(r.found, Cause{
		Code: code, Message: fmt.Sprintf(format, args...), Pos: r.obj.Position(path...), Path: path,
	})
}

func (r *review) warnings() []Cause {
	slices.SortStableFunc(r.found, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return r.found
}

// warn adds warnings about settings that are allowed but probably mistakes, as far as the object alone shows them.
func (r *review) warn(typed any) {
	switch o := typed.(type) {
	case *sourcev1.HelmRepository:
		r.warnRepository(o)
	case *sourcev1.OCIRepository:
		r.warnOCIRepository(o)
	case *sourcev1.HelmChart:
		if r.obj.Origin == nil { // otherwise the warning is about the release
			r.warnVerification(o.Spec.Verify)
		}
	case *helmv2.HelmRelease:
		r.warnRelease(o)
	case *operator.HelmRelease:
		r.warnOperator(o)
	}
}

func (r *review) warnRepository(o *sourcev1.HelmRepository) {
	oci := o.Spec.Type == sourcev1.HelmRepositoryTypeOCI
	switch {
	case o.Spec.PassCredentials && oci:
		r.warnAt(finding.UselessSetting, "spec.passCredentials", "spec.passCredentials: true has no effect on a repository of type oci")
	case o.Spec.PassCredentials:
		r.warnAt(finding.PassCredentials, "spec.passCredentials", "spec.passCredentials: true sends the credentials to every host that the index names")
	}
	if oci {
		return
	}
	if o.Spec.Provider != "" && o.Spec.Provider != sourcev1.GenericOCIProvider {
		r.warnAt(finding.UselessSetting, "spec.provider", "spec.provider: %s has no effect on a repository that is not of type oci", o.Spec.Provider)
	}
	if o.Spec.Insecure {
		r.warnAt(finding.UselessSetting, "spec.insecure", "spec.insecure: true has no effect on a repository that is not of type oci")
	}
}

func (r *review) warnVerification(v *sourcev1.HelmChartVerification) {
	switch {
	case v == nil:
	case v.Provider == "notation" && len(v.MatchOIDCIdentity) > 0:
		r.warnAt(finding.UselessSetting, "spec.verify.matchOIDCIdentity", "spec.verify.matchOIDCIdentity has no effect with provider notation")
	case v.Provider == "cosign" && v.SecretRef == nil && len(v.MatchOIDCIdentity) == 0:
		r.warnAt(finding.VerifyAnyone, "spec.verify", "spec.verify without secretRef and matchOIDCIdentity accepts signatures from anyone")
	}
}

func (r *review) warnOCIRepository(o *sourcev1.OCIRepository) {
	if ref := o.Spec.Reference; ref != nil {
		r.warnReference(ref)
	}
	if o.Spec.Ignore != nil && o.GetLayerOperation() == sourcev1.OCILayerCopy {
		r.warnAt(finding.UselessSetting, "spec.ignore", "spec.ignore has no effect with spec.layerSelector.operation: copy")
	}
	if o.Spec.Provider != "" && o.Spec.Provider != sourcev1.GenericOCIProvider && o.Spec.SecretRef != nil {
		r.warnAt(finding.UselessSetting, "spec.provider", "spec.provider: %s has no effect beside spec.secretRef", o.Spec.Provider)
	}
	v := o.Spec.Verify
	if v == nil {
		return
	}
	switch rooted := v.TrustedRootSecretRef != nil; {
	case rooted && v.Provider == "notation":
		r.warnAt(finding.UselessSetting, "spec.verify.trustedRootSecretRef", "spec.verify.trustedRootSecretRef has no effect with provider notation")
	case rooted && v.SecretRef != nil:
		r.warnAt(finding.UselessSetting, "spec.verify.trustedRootSecretRef", "spec.verify.trustedRootSecretRef has no effect beside spec.verify.secretRef, but its Secret must exist")
	case rooted:
		return // the trusted identities are known once the root is read
	}
	r.warnVerification(&sourcev1.HelmChartVerification{Provider: v.Provider, SecretRef: v.SecretRef, MatchOIDCIdentity: v.MatchOIDCIdentity})
}

// warnReference warns of fields that other fields override. A tag beside a digest is a common note to readers.
func (r *review) warnReference(ref *sourcev1.OCIRepositoryRef) {
	switch {
	case ref.Digest != "" && ref.SemVer != "":
		r.warnAt(finding.UselessSetting, "spec.ref.semver", "spec.ref.semver has no effect beside spec.ref.digest")
	case ref.SemVer != "" && ref.Tag != "":
		r.warnAt(finding.UselessSetting, "spec.ref.tag", "spec.ref.tag has no effect beside spec.ref.semver")
	case ref.SemVer == "" && ref.SemverFilter != "":
		r.warnAt(finding.UselessSetting, "spec.ref.semverFilter", "spec.ref.semverFilter has no effect without spec.ref.semver")
	}
}
