package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
)

// Object checks the references of an object, and the values that only a
// controller checks. It reads only the input. The findings include admission's warnings, and are
// in the order of the file.
func Object(inv *inventory.Inventory, adm *admission.Admitted) []finding.Finding {
	v := newValidation(inv, adm)
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
	case *helmv2.HelmRelease:
		v.helmRelease(obj)
	case *operator.HelmRelease:
		v.operated(obj)
	case *swv1.ArtifactGenerator:
		v.artifactGenerator(obj)
	}
	if adm.Object.Origin == nil {
		v.durations() // derived objects are checked where they come from
	}
	found := append(Warned(adm), v.findings...)
	sortFindings(found)
	return found
}

// Failed returns the finding for an error that was found outside of this package, or no finding if unknown values may prevent it.
func Failed(inv *inventory.Inventory, adm *admission.Admitted, code finding.Code, err error, path ...any) []finding.Finding {
	v := newValidation(inv, adm)
	v.fail(code, err, path...)
	return v.findings
}

func newValidation(inv *inventory.Inventory, adm *admission.Admitted) *validation {
	return &validation{inv: inv, secrets: credential.NewReader(inv.Set(), credential.Options{}), adm: adm}
}

type validation struct {
	inv      *inventory.Inventory
	secrets  *credential.Reader
	adm      *admission.Admitted
	findings []finding.Finding
}

// fail records an error, with the code of the error itself if it has one.
func (v *validation) fail(code finding.Code, err error, path ...any) {
	if err == nil {
		return
	}
	if own := finding.CodeOf(err); own != "" {
		code = own
	}
	if rejected, ok := errors.AsType[*inventory.RejectedError](err); ok && rejected.Object.Open {
		return // already reported; the values of the cluster may make it valid
	}
	hints := finding.Hints(err)
	var missing *manifest.NotFoundError
	switch text, _ := manifest.ValueAt(v.adm.Object.Content, path).(string); {
	case len(manifest.Variables(text)) > 0 && v.adm.Object.Open:
		return // its value cannot be known
	case len(manifest.Variables(text)) > 0:
		code, hints = finding.UnresolvedVariable, nil
	case code == finding.MissingValues && errors.As(err, &missing) && missing.InCluster:
		return // an object in the cluster makes it
	case errors.As(err, &missing) && ofInstance(v.adm.Object) && slices.Equal(path, []any{"spec", "secretRef", "name"}):
		return // the login of the repository's own source is in the cluster only
	case errors.As(err, &missing) && missing.Unread:
		return // the file that cannot be read is the finding
	case code != finding.MissingSecret || !errors.As(err, &missing):
	case missing.InCluster && !slices.Contains(path, any("verify")):
		return // the reference is valid; only trusted keys must be known here
	case missing.Elsewhere() == "":
		hints = nil
	}
	f := At(v.adm.Object, code, err.Error(), hints, path...)
	f.BlockedBy = BlockedBy(err)
	v.findings = append(v.findings, f)
}

// warn records a warning whose hint is that of its code.
func (v *validation) warn(code finding.Code, text string, path ...any) {
	v.findings = append(v.findings, At(v.adm.Object, code, text, nil, path...))
}

func (v *validation) helmRepository(obj *sourcev1.HelmRepository) {
	oci := obj.Spec.Type == sourcev1.HelmRepositoryTypeOCI
	switch {
	case oci:
		v.fail(finding.TypeWithoutOCI, RegistryURL(obj), "spec", "url")
	case strings.HasPrefix(obj.Spec.URL, sourcev1.HelmRepositoryTypeOCI+"://"):
		v.fail(finding.OCIWithoutType, SchemeTypeError(), "spec", "url")
	default:
		v.httpURL(obj.Spec.URL)
	}
	v.loginInURL(obj.Spec.URL)
	v.repositorySecrets(obj, oci)
}

func (v *validation) httpURL(raw string) {
	normal, err := fetch.NormalizeURL(raw)
	if err != nil {
		v.fail(finding.InvalidURL, InvalidURL(err), "spec", "url")
		return
	}
	if _, err := helmrepo.Open(fetch.NewClient(fetch.Config{}), normal, nil, helmrepo.Options{}); err != nil {
		v.fail(finding.InvalidURL, ClientError(err), "spec", "url")
		return
	}
	if NamesIndex(raw) {
		v.warn(finding.IndexInURL, IndexInURL, "spec", "url")
	}
}

const IndexInURL = "the URL ends in index.yaml, which is appended to it: a cluster would request index.yaml/index.yaml"

func NamesIndex(raw string) bool {
	u, err := auth.ParseURL(raw)
	return err == nil && fetch.NamesIndex(u)
}

// loginInURL warns of a password in a URL, where everybody can read it.
func (v *validation) loginInURL(raw string) {
	u, err := auth.ParseURL(raw)
	if err != nil || u.User == nil {
		return
	}
	if _, ok := u.User.Password(); ok {
		v.warn(finding.LoginInURL, "the URL contains a password", "spec", "url")
	}
}

func (v *validation) repositorySecrets(obj *sourcev1.HelmRepository, oci bool) {
	if oci {
		login := v.secrets.Registry(obj)
		v.references(login.Problems, login.Warnings)
		v.registryLogin(obj, login)
		return
	}
	login := v.secrets.Server(context.Background(), obj)
	v.references(login.Problems, login.Warnings)
	if login.Useless != "" {
		v.warn(finding.OddSecret, login.Useless, "spec", "secretRef", "name")
	}
}

// references records errors and warnings about the Secrets and accounts that an object refers to.
func (v *validation) references(problems []credential.Problem, warned []credential.Warning) {
	for _, p := range problems {
		v.fail(finding.MissingSecret, p.Err, p.Path...)
	}
	for _, w := range warned {
		v.warn(w.Code, w.Text, w.Path...)
	}
}

// registryLogin checks the URL of a registry, and whether the Secret has a login
// for its host.
func (v *validation) registryLogin(obj *sourcev1.HelmRepository, login *credential.Repository) {
	if RegistryURL(obj) != nil {
		return // reported already
	}
	registry, err := oci.NewClient(fetch.NewClient(fetch.Config{})).Namespace(obj.Spec.URL, oci.Options{})
	if err != nil {
		v.fail(finding.InvalidURL, fmt.Errorf("failed to construct Helm client: %w", err), "spec", "url")
		return
	}
	if login.Err() == nil {
		_, err := login.Login(registry.Host())
		v.fail(finding.NoRegistryLogin, err, "spec", "secretRef", "name")
	}
}
