package validate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A run makes the checks in this file as well.

// InvalidURL returns the error of an invalid URL of a HelmRepository.
func InvalidURL(err error) error {
	return fmt.Errorf("invalid Helm repository URL: %w", err)
}

// RegistryURL checks the URL of an OCI HelmRepository, as far as possible without a
// chart.
func RegistryURL(obj *sourcev1.HelmRepository) error {
	if strings.HasPrefix(obj.Spec.URL, sourcev1.HelmRepositoryTypeOCI+"://") {
		return nil
	}
	shown, hint := auth.RedactURL(obj.Spec.URL), "a HelmRepository of type oci needs an oci:// URL; drop the type for an HTTP repository"
	if _, rest, ok := strings.Cut(shown, "://"); ok {
		hint = "write oci://" + rest + ", or drop the type for an HTTP repository"
	}
	return &finding.Problem{Code: finding.TypeWithoutOCI, Text: "failed to construct Helm client: invalid OCI registry URL: " + shown, Advice: hint}
}

// ArtifactURL parses the URL of an OCIRepository.
func ArtifactURL(obj *sourcev1.OCIRepository) (oci.Name, error) {
	name, err := oci.ParseURL(obj.Spec.URL)
	if err != nil {
		return name, fmt.Errorf("URL validation failed for '%s': %w", auth.RedactURL(obj.Spec.URL), err)
	}
	return name, nil
}

// UselessValuesFiles returns a warning for values files that a chart from a tree uses in any case, or "".
func UselessValuesFiles(obj *sourcev1.HelmChart) string {
	if len(obj.Spec.ValuesFiles) != 1 || chart.EffectiveValuesFiles(obj.Spec.ValuesFiles) != nil {
		return ""
	}
	return fmt.Sprintf("spec.valuesFiles with only '%s' has no effect, and does not refer to the file at the root of the source", obj.Spec.ValuesFiles[0])
}

// AnyoneOfRoot is the warning for a trusted root without identities.
const AnyoneOfRoot = "spec.verify without matchOIDCIdentity accepts signatures from anyone with a certificate of that root"

// ArtifactReference returns spec.ref of an OCIRepository, or an empty reference.
func ArtifactReference(obj *sourcev1.OCIRepository) sourcev1.OCIRepositoryRef {
	if obj.Spec.Reference == nil {
		return sourcev1.OCIRepositoryRef{}
	}
	return *obj.Spec.Reference
}

const providerCosign = "cosign"

// is reports whether an error's chain contains an error of the type.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// ClientError returns the error of a HelmRepository with a URL that no client accepts.
func ClientError(err error) error {
	if is[*url.Error](err) {
		return InvalidURL(err)
	}
	return fmt.Errorf("failed to construct Helm client: %w", err)
}

// SchemeTypeError returns the error for the most common mistake with OCI registries.
func SchemeTypeError() error {
	return &finding.Problem{
		Code: finding.OCIWithoutType, Text: "invalid Helm repository URL: 'oci' URL scheme cannot be used with 'default' HelmRepository type",
		Advice: "add 'type: oci' to the spec of the HelmRepository",
	}
}
