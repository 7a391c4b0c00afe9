package reconcile

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"regexp/syntax"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// CodeOf says what kind of mistake is behind the failure of an object. The types of
// its errors decide, the most telling first, then the reason of its condition; its
// text never does.
func CodeOf(err error) finding.Code {
	f := status.AsFailure(err)
	if f == nil {
		return ""
	}
	var remembered *rememberedError
	if errors.As(err, &remembered) && remembered.code != "" {
		return remembered.code
	}
	if code, ok := failureCode(f, err); ok {
		return code
	}
	for _, of := range []func(error) finding.Code{integrityCode, inputCode, answerCode} {
		if code := of(err); code != "" {
			return code
		}
	}
	return reasonCode(f.Reason)
}

// failureCode is CodeOf with the failures whose reason says more than their errors.
func failureCode(f *status.Failure, err error) (finding.Code, bool) {
	switch f.Reason {
	case status.NoSourceArtifact, status.SourceNotReady:
		return finding.SourceNotReady, true
	case status.DependencyBuildError, status.ValuesFilesError:
		if code := integrityCode(err); code != "" {
			return code, true
		}
		return reasonCode(f.Reason), true
	}
	return "", false
}

// is reports whether an error's chain has an error of the type.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// integrityCode is for bytes and signatures that are not what they should be.
func integrityCode(err error) finding.Code {
	var vouched interface{ Integrity() bool }
	switch {
	case is[*setupError](err), is[*verify.SettingsError](err), is[*unverifiableError](err), is[*directoryUnsignedError](err):
		return finding.Unverifiable
	case !errors.As(err, &vouched) || !vouched.Integrity():
		return ""
	case is[*fetch.DigestError](err), is[*oci.BlobError](err):
		return finding.DigestMismatch
	case is[*MismatchError](err):
		return finding.OtherChart
	case is[*AlteredError](err):
		return finding.ArtifactAltered
	case is[*git.VerificationError](err):
		return finding.GitUnsigned
	case is[*verify.UnsignedError](err), is[*unaskedError](err), errors.Is(err, fs.ErrNotExist):
		return finding.Unsigned
	}
	return finding.SignatureFailed
}

// inputCode is for mistakes in what was read, which validate finds as well.
func inputCode(err error) finding.Code {
	var missing *manifest.NotFoundError
	var coded interface{ Code() finding.Code }
	var duplicate *manifest.DuplicateError
	switch {
	case errors.As(err, &coded):
		return coded.Code()
	case releaseCode(err) != "":
		return releaseCode(err)
	case errors.As(err, &duplicate) && duplicate.Kind == "Secret", is[*manifest.SecretError](err):
		return finding.InvalidSecret
	case is[*inventory.RejectedError](err), duplicate != nil:
		return finding.UnusableSource
	case errors.As(err, &missing) && (missing.Kind == "Secret" || missing.Kind == "ServiceAccount"):
		return finding.MissingSecret
	case is[*manifest.ServiceAccountError](err), is[*credential.AccountError](err):
		return finding.ServiceAccount
	case errors.As(err, &missing):
		return finding.MissingSource
	case is[*includeCycleError](err):
		return finding.IncludeCycle
	case is[*schemeTypeError](err):
		return finding.OCIWithoutType
	case is[*registryURLError](err):
		return finding.TypeWithoutOCI
	case is[*fetch.SchemeError](err):
		return finding.UnsupportedScheme
	case is[*oci.URLError](err), is[*git.URLError](err):
		return finding.InvalidURL
	case is[*auth.RegistrySecretError](err):
		return finding.NoRegistryLogin
	case is[*resolve.ConstraintError](err):
		return finding.MalformedVersion
	case is[*syntax.Error](err):
		return finding.InvalidExpression
	case is[*resolve.NameError](err):
		return finding.InvalidChartName
	case is[*fetch.NotSupportedError](err):
		return finding.NotSupported
	case is[*credential.ProviderError](err):
		return finding.GitSecret
	}
	return ""
}

// answerCode is for what servers and repositories answer, or do not.
func answerCode(err error) finding.Code {
	var large interface{ TooLarge() bool }
	switch {
	case errors.As(err, &large) && large.TooLarge():
		return finding.TooLarge
	case is[*resolve.NoMatchError](err), is[*oci.NoTagsError](err):
		return finding.NoMatch
	case is[*unknownChartError](err):
		return finding.UnknownChart
	case is[*chart.MissingValuesError](err):
		return finding.ValuesFiles
	case is[*helmrepo.IndexError](err), is[*entriesError](err):
		return finding.InvalidIndex
	case is[*git.EmptyError](err), is[*git.RefError](err):
		return finding.GitReference
	case is[*oci.ManifestError](err):
		return finding.InvalidArchive
	case is[*oci.LayerError](err):
		return finding.UnusableLayer
	}
	return networkCode(err)
}

func networkCode(err error) finding.Code {
	switch {
	case fetch.TLSFailure(err):
		return finding.Certificate
	case fetch.AuthFailure(err):
		return finding.Authentication
	case is[*fetch.TimeoutError](err), errors.Is(err, context.DeadlineExceeded):
		return finding.TimedOut
	}
	if code := answerStatus(err); code != 0 {
		return statusCode(code)
	}
	switch {
	case fetch.Transient(err):
		return finding.Unreachable
	case is[*fetch.RequestError](err) && !is[*url.Error](err):
		return finding.RefusedRequest
	}
	return ""
}

// answerStatus is the HTTP status behind an error, 0 if there is none.
func answerStatus(err error) int {
	var answer *fetch.StatusError
	var signature *verify.AnswerError
	var token *auth.TokenError
	switch {
	case errors.As(err, &answer):
		return answer.Code
	case errors.As(err, &signature):
		return signature.Code
	case errors.As(err, &token):
		return token.Code
	}
	return 0
}

func statusCode(code int) finding.Code {
	switch {
	case code == http.StatusNotFound, code == http.StatusGone:
		return finding.NotFound
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests,
		code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return finding.ServerError
	}
	return finding.RefusedRequest
}

// reasonCode is what is left to say where the errors themselves have no type.
func reasonCode(r status.Reason) finding.Code {
	if code := releaseReasonCode(r); code != "" {
		return code
	}
	switch r {
	case status.URLInvalid:
		return finding.InvalidURL
	case status.AuthenticationFailed:
		return finding.Authentication
	case status.IndexationFailed:
		return finding.InvalidIndex
	case status.SourceUnavailable:
		return finding.MissingSource
	case status.NoSourceArtifact:
		return finding.SourceNotReady
	case status.InvalidChartReference:
		return finding.UnknownChart
	case status.ChartPullError:
		return finding.InvalidArchive
	case status.ValuesFilesError:
		return finding.ValuesFiles
	case status.DependencyBuildError:
		return finding.Dependencies
	case status.ChartPackageError, status.MetadataPatchError:
		return finding.Packaging
	case status.ChartVerificationError, status.VerificationError:
		return finding.Unverifiable
	case status.GitOperationFailed:
		return finding.GitFailed
	case status.BucketOperationFailed:
		return finding.BucketFailed
	case status.OCIPullFailed:
		return finding.InvalidArchive
	case status.OCILayerOperationFailed:
		return finding.UnusableLayer
	case status.DirectoryCreationFailed, status.AcquireLockFailed, status.ArchiveOperationFailed,
		status.StatOperationFailed, status.ReadOperationFailed:
		return finding.Storage
	}
	return finding.Unexpected
}
