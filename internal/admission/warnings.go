package admission

import (
	"cmp"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
)

func (r *review) warnAt(code finding.Code, field, format string, args ...any) {
	path := pathOf(r.obj.Content, field)
	r.found = append(r.found, Warning{
		Code: code, Field: field, Message: fmt.Sprintf(format, args...), Pos: r.obj.Position(path...), Path: path,
	})
}

func (r *review) warnings() []Warning {
	slices.SortStableFunc(r.found, func(a, b Warning) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return r.found
}

// warn looks for what is allowed but hardly meant, as far as the object alone shows it.
func (r *review) warn(typed any) {
	switch o := typed.(type) {
	case *sourcev1.HelmRepository:
		r.warnRepository(o)
	case *sourcev1.HelmChart:
		r.warnVerification(o.Spec.Verify)
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
		r.warnAt(finding.UselessIdentities, "spec.verify.matchOIDCIdentity", "spec.verify.matchOIDCIdentity has no effect with provider notation")
	case v.Provider == "cosign" && v.SecretRef == nil && len(v.MatchOIDCIdentity) == 0:
		r.warnAt(finding.VerifyAnyone, "spec.verify", "spec.verify without secretRef and matchOIDCIdentity accepts a signature of anyone")
	}
}
