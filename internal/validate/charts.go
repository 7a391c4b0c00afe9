package validate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/verify"
)

func (v *validation) helmChart(obj *sourcev1.HelmChart) {
	ref := obj.Spec.SourceRef
	source, err := v.inv.FindFor(v.adm.Object, ref.Kind, obj.Namespace, ref.Name)
	if err != nil {
		v.fail(finding.MissingSource, &inventory.UnavailableError{Kind: ref.Kind, Name: ref.Name, Err: err}, "spec", "sourceRef", "name")
	}
	if !obj.Spec.Suspend {
		v.suspendedSource(source, "spec", "sourceRef", "name")
	}
	if ref.Kind == sourcev1.HelmRepositoryKind {
		v.publishedChart(obj, source)
	} else if version := obj.Spec.Version; version != "" && version != "*" {
		v.warn(finding.UselessSetting, "spec.version has no effect on a chart from a "+ref.Kind, "spec", "version")
	}
	if text := UselessValuesFiles(obj); text != "" && ref.Kind != sourcev1.HelmRepositoryKind {
		v.warn(finding.UselessSetting, text, "spec", "valuesFiles")
	}
	v.verification(obj, source)
}

// suspendedSource warns of a suspended source of an object that is not suspended.
func (v *validation) suspendedSource(source *admission.Admitted, path ...any) {
	if source == nil {
		return
	}
	if manifest.ValueAt(source.Content, []any{"spec", "suspend"}) == true {
		v.warn(finding.SuspendedSource, fmt.Sprintf("its source %s is suspended", source.Object), path...)
		v.related(source.Object.Position("spec", "suspend"))
	}
}

// related adds a position to the last finding.
func (v *validation) related(pos manifest.Pos) {
	last := &v.findings[len(v.findings)-1]
	last.Related = append(last.Related, pos)
}

// publishedChart checks the selection of a chart from a Helm repository.
func (v *validation) publishedChart(obj *sourcev1.HelmChart, source *admission.Admitted) {
	v.fail(finding.InvalidChartName, resolve.ValidateName(obj.Spec.Chart), "spec", "chart")
	v.emptyRange("spec", "version")
	v.version(obj.Spec.Chart, obj.Spec.Version, "spec", "version")
	v.chartInURL(obj.Spec.Chart, source, "spec", "chart")
	if obj.Spec.ReconcileStrategy == sourcev1.ReconcileStrategyRevision {
		v.warn(finding.UselessSetting, "spec.reconcileStrategy: Revision has no effect on a chart from a HelmRepository", "spec", "reconcileStrategy")
	}
}

// version checks the version of a chart.
func (v *validation) version(chart, version string, path ...any) {
	err := resolve.ValidateVersion(version)
	switch {
	case err != nil:
		v.fail(finding.MalformedVersion, err, path...)
	case !resolve.Satisfiable(version):
		v.fail(finding.ImpossibleRange, fmt.Errorf("no version can match %q", version), path...)
	case resolve.Unbounded(version):
		if manifest.ValueAt(v.adm.Object.Content, path) == nil {
			path[len(path)-1] = "chart"
		}
		v.warn(finding.UnpinnedVersion, fmt.Sprintf("chart %q follows every new version", chart), path...)
	}
}

// tagRange reports a range that no tag can match, and warns of a range without an upper limit.
func (v *validation) tagRange(semver string) {
	switch {
	case !resolve.Satisfiable(semver):
		v.fail(finding.ImpossibleRange, fmt.Errorf("no version can match %q", semver), "spec", "ref", "semver")
	case resolve.Unbounded(semver):
		v.warn(finding.UnpinnedVersion, "the source follows every new version", "spec", "ref", "semver")
	}
}

// chartInURL warns of a URL that ends in the name of the chart, which is appended to it.
// It skips a registry whose only namespace is the chart's name: such charts exist.
func (v *validation) chartInURL(chart string, source *admission.Admitted, path ...any) {
	if source == nil {
		return
	}
	repo, ok := source.Typed.(*sourcev1.HelmRepository)
	if !ok || repo.Spec.Type != sourcev1.HelmRepositoryTypeOCI {
		return
	}
	url, _ := strings.CutPrefix(strings.TrimRight(repo.Spec.URL, "/"), sourcev1.HelmRepositoryTypeOCI+"://")
	parent, ok := strings.CutSuffix(url, "/"+chart)
	if !ok || !strings.Contains(parent, "/") {
		return
	}
	v.findings = append(v.findings, At(v.adm.Object, finding.ChartInURL,
		fmt.Sprintf("the URL of %s ends in the chart's name, which is appended to it: %s/%s", source.Object, auth.RedactURL(repo.Spec.URL), chart),
		[]string{fmt.Sprintf("change the URL of %s to %s", source.Object, auth.RedactURL(sourcev1.HelmRepositoryTypeOCI+"://"+parent))}, path...))
	v.related(source.Object.Position("spec", "url"))
}

func (v *validation) verification(obj *sourcev1.HelmChart, source *admission.Admitted) {
	spec := obj.Spec.Verify
	if spec == nil {
		return
	}
	if source != nil {
		if repo, ok := source.Typed.(*sourcev1.HelmRepository); ok && repo.Spec.Type != sourcev1.HelmRepositoryTypeOCI {
			v.fail(finding.UselessVerify, errors.New("spec.verify works only with charts from OCI registries: the source is an HTTP repository"), "spec", "verify")
		}
	}
	v.identities(spec.MatchOIDCIdentity)
	v.keys(obj.Namespace, spec.Provider, spec.SecretRef, spec.MatchOIDCIdentity)
}

// keys checks the Secret with the keys of a verification.
func (v *validation) keys(namespace, provider string, ref *meta.LocalObjectReference, identities []sourcev1.OIDCIdentityMatch) {
	if ref == nil {
		if provider != providerCosign {
			v.fail(finding.NoVerificationKeys, errors.New("notation needs spec.verify.secretRef: a Secret with trustpolicy.json and certificates"), "spec", "verify")
		}
		return
	}
	secret, err := v.secrets.Keys(namespace, ref)
	if err != nil {
		v.fail(finding.MissingKeys, fmt.Errorf("failed to get verification secret '%s/%s': %w", namespace, ref.Name, err), "spec", "verify", "secretRef", "name")
		return
	}
	v.verificationSecret(provider, identities, secret)
}

// identities checks the expressions that an identity must match.
func (v *validation) identities(list []sourcev1.OIDCIdentityMatch) {
	for i, id := range list {
		_, err := regexp.Compile(id.Issuer)
		v.fail(finding.InvalidExpression, err, "spec", "verify", "matchOIDCIdentity", i, "issuer")
		_, err = regexp.Compile(id.Subject)
		v.fail(finding.InvalidExpression, err, "spec", "verify", "matchOIDCIdentity", i, "subject")
	}
}

// verificationSecret checks the keys in the Secret of a verification.
func (v *validation) verificationSecret(provider string, identities []sourcev1.OIDCIdentityMatch, secret *manifest.Secret) {
	path := []any{"spec", "verify", "secretRef", "name"}
	if provider != providerCosign {
		_, _, err := verify.NotationSecret(credential.NameOf(secret), secret.Data)
		v.fail(finding.NoVerificationKeys, err, path...)
		v.ignoredKeys(secret, err, verify.Certificate, path)
		return
	}
	keys, err := verify.CosignKeys(credential.NameOf(secret), secret.Data)
	if root, ok := credential.RootIn(secret); ok && err != nil {
		_, err = verify.TrustedRoot(root)
		v.anyone(err, identities)
	}
	v.fail(finding.NoVerificationKeys, err, path...)
	v.ignoredKeys(secret, err, verify.PublicKey, path)
	if len(keys) > 0 && len(identities) > 0 {
		v.warn(finding.UselessSetting, "spec.verify.matchOIDCIdentity has no effect beside the public keys of Secret "+credential.NameOf(secret), "spec", "verify", "matchOIDCIdentity")
	}
}

// anyone warns of a trusted root without identities.
func (v *validation) anyone(err error, identities []sourcev1.OIDCIdentityMatch) {
	if err == nil && len(identities) == 0 {
		v.warn(finding.VerifyAnyone, AnyoneOfRoot, "spec", "verify")
	}
}

// ignoredKeys warns of keys in a Secret that are ignored because of their names.
// It does nothing if the Secret has no usable key, which was reported already.
func (v *validation) ignoredKeys(secret *manifest.Secret, err error, ignored func(name string, content []byte) bool, path []any) {
	if err != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(secret.Data)) {
		if ignored(name, secret.Data[name]) {
			v.warn(finding.OddSecret, fmt.Sprintf("%q in Secret %s is ignored because of its name", name, credential.NameOf(secret)), path...)
		}
	}
}
