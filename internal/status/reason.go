package status

import (
	"cmp"
	"errors"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A Reason is the reason of a condition or event, spelled as source-controller spells it.
type Reason string

// Reasons of failures. Unless a comment states otherwise, a failure with the reason sets the condition FetchFailed and is
// retried.
const (
	URLInvalid           = Reason(sourcev1.URLInvalidReason) // stalls
	AuthenticationFailed = Reason(sourcev1.AuthenticationFailedReason)
	IndexationFailed     = Reason(sourcev1.IndexationFailedReason)
	Failed               = Reason(meta.FailedReason)
	SourceUnavailable    = Reason("SourceUnavailable")
	NoSourceArtifact     = Reason("NoSourceArtifact") // made by NoSource
	ReadOperationFailed  = Reason(sourcev1.ReadOperationFailedReason)
	// UnsupportedSourceKind is the reason of Stalled only: FetchFailed and Ready have SourceUnavailable.
	UnsupportedSourceKind = Reason("UnsupportedSourceKind")
	// VerificationError means that nothing could be verified. It makes SourceVerified false as well.
	VerificationError = Reason(sourcev1.VerificationError)

	InvalidChartReference = Reason("InvalidChartReference") // stalls
	ChartPullError        = Reason("ChartPullError")
	Unknown               = Reason("Unknown")

	MetadataPatchError   = Reason("MetadataPatchError")   // BuildFailed, stalls
	ValuesFilesError     = Reason("ValuesFilesError")     // BuildFailed, stalls
	DependencyBuildError = Reason("DependencyBuildError") // BuildFailed
	ChartPackageError    = Reason("ChartPackageError")    // BuildFailed
	// ChartVerificationError means that a signature was refused. It is BuildFailed, and SourceVerified is false with
	// the reason VerificationError.
	ChartVerificationError = Reason("ChartVerificationError")

	DirectoryCreationFailed = Reason(sourcev1.DirCreationFailedReason)      // StorageOperationFailed
	AcquireLockFailed       = Reason(sourcev1.AcquireLockFailedReason)      // StorageOperationFailed
	ArchiveOperationFailed  = Reason(sourcev1.ArchiveOperationFailedReason) // StorageOperationFailed
	StatOperationFailed     = Reason(sourcev1.StatOperationFailedReason)    // StorageOperationFailed

	// NotLocked is the reason of an object without an entry in the lock file that it must match. Flux does not have it.
	NotLocked = Reason("NotLocked")

	GitOperationFailed    = Reason(sourcev1.GitOperationFailedReason)
	BucketOperationFailed = Reason(sourcev1.BucketOperationFailedReason)

	// FeatureGateDisabled is the reason of Stalled only.
	FeatureGateDisabled     = Reason(meta.FeatureGateDisabledReason)
	OCIPullFailed           = Reason(sourcev1.OCIPullFailedReason)
	OCILayerOperationFailed = Reason(sourcev1.OCILayerOperationFailedReason)
)

// Finding returns the code for a reason, for failures whose errors have no code.
func (r Reason) Finding() finding.Code { return cmp.Or(treatments()[r].code, finding.Unexpected) }

// Reasons that are not failures.
const (
	Succeeded             = Reason(meta.SucceededReason)
	Progressing           = Reason(meta.ProgressingReason)
	ProgressingWithRetry  = Reason(meta.ProgressingWithRetryReason)
	ChartPullSucceeded    = Reason(sourcev1.ChartPullSucceededReason)
	ChartPackageSucceeded = Reason(sourcev1.ChartPackageSucceededReason)
	NewRevision           = Reason("NewRevision")
	NewChart              = Reason("NewChart")
	NewArtifact           = Reason("NewArtifact")
	ArtifactUpToDate      = Reason(sourcev1.ArtifactUpToDateReason)
)

type treatment struct {
	code       finding.Code // of errors that have none; Unexpected if empty
	condition  string       // FetchFailed if empty
	prefix     string       // in front of the error's text, ending in ": "
	stalls     bool
	unverifies bool
	reason     Reason // of the condition, if it differs from that of Stalled
}

// treatments returns what becomes of failures in source-controller, by their reasons. A reason without an entry is a FetchFailed
// without prefix that is retried.
func treatments() map[Reason]treatment {
	return map[Reason]treatment{
		URLInvalid:              {code: finding.InvalidURL, stalls: true},
		AuthenticationFailed:    {code: finding.Authentication},
		IndexationFailed:        {code: finding.InvalidIndex},
		SourceUnavailable:       {code: finding.MissingSource, prefix: "failed to get source: "},
		UnsupportedSourceKind:   {prefix: "failed to get source: ", stalls: true, reason: SourceUnavailable},
		NoSourceArtifact:        {code: finding.SourceNotReady},
		FeatureGateDisabled:     {condition: meta.StalledCondition, stalls: true},
		InvalidChartReference:   {code: finding.UnknownChart, prefix: "invalid chart reference: ", stalls: true},
		ChartPullError:          {code: finding.InvalidArchive, prefix: "chart pull error: "},
		Unknown:                 {prefix: "unknown build error: "},
		MetadataPatchError:      {code: finding.Packaging, condition: buildFailed, prefix: "chart metadata patch error: ", stalls: true},
		ValuesFilesError:        {code: finding.ValuesFiles, condition: buildFailed, prefix: "values files merge error: ", stalls: true},
		DependencyBuildError:    {code: finding.Dependencies, condition: buildFailed, prefix: "dependency build error: "},
		ChartPackageError:       {code: finding.Packaging, condition: buildFailed, prefix: "chart package error: "},
		ChartVerificationError:  {code: finding.Unverifiable, condition: buildFailed, prefix: "chart verification error: ", unverifies: true},
		VerificationError:       {code: finding.Unverifiable, unverifies: true},
		GitOperationFailed:      {code: finding.GitFailed},
		BucketOperationFailed:   {code: finding.BucketFailed},
		OCIPullFailed:           {code: finding.InvalidArchive},
		OCILayerOperationFailed: {code: finding.UnusableLayer},
		DirectoryCreationFailed: {code: finding.Storage, condition: storageFailed, prefix: "failed to create artifact directory: "},
		AcquireLockFailed:       {code: finding.Storage, condition: storageFailed, prefix: "failed to acquire lock for artifact: "},
		ArchiveOperationFailed:  {code: finding.Storage, condition: storageFailed},
		StatOperationFailed:     {code: finding.Storage, condition: storageFailed},
		ReadOperationFailed:     {code: finding.Storage},

		SourceNotReady:   {code: finding.SourceNotReady},
		ValuesError:      {code: finding.InvalidValues},
		ChartMutateError: {code: finding.ChartTag},
		ArtifactFailed:   {code: finding.InvalidArchive},
		RepoFetchFailed:  {condition: ChartFetchedCondition},
	}
}

// Wrap adds the reason to an error: it returns a [*Failure] whose text is the reason's prefix, as source-controller has it,
// and that of the error. It returns nil for nil.
func (r Reason) Wrap(err error) error {
	if err == nil {
		return nil
	}
	t := treatments()[r]
	f := &Failure{
		Type:       cmp.Or(t.condition, fetchFailed),
		Reason:     cmp.Or(t.reason, r),
		Message:    t.prefix + err.Error(),
		Unverified: t.unverifies,
		Err:        err,
	}
	if t.stalls {
		f.Stalled = r
	}
	return f
}

// Stall wraps an error that no retry can fix, regardless of the reason.
func (r Reason) Stall(err error) error {
	wrapped := r.Wrap(err)
	if f, ok := wrapped.(*Failure); ok { //nolint:errorlint // it was just made by Wrap
		f.Stalled = r
	}
	return wrapped
}

// A Failure is an error with its effect on the conditions. It is made where the reason is known, and does not change: several
// objects may share it, and each of them copies it for the message that it shows.
type Failure struct {
	Type       string // of the condition that becomes true; SourceVerified becomes false
	Reason     Reason
	Message    string // of the conditions and the event
	Detail     string // the message for people, with the files of manifests; "" if it is the same
	Stalled    Reason // reason of the Stalled condition, "" for a failure that is retried
	Unverified bool   // SourceVerified becomes false as well, with the reason VerificationError
	Requeue    bool   // it waits for another object: no warning event, as source-controller requeues without an error
	Err        error
}

func (f *Failure) Error() string { return f.Message }

func (f *Failure) Unwrap() error { return f.Err }

// Finding returns the code of the reason if it is more precise than that of the wrapped errors: an unavailable source has its
// own failure, and a failed build is that of the chart, unless an integrity check failed.
func (f *Failure) Finding() finding.Code {
	var vouched interface{ Integrity() bool }
	switch f.Reason {
	case NoSourceArtifact, SourceNotReady:
		return f.Reason.Finding()
	case DependencyBuildError, ValuesFilesError:
		if !errors.As(f.Err, &vouched) || !vouched.Integrity() {
			return f.Reason.Finding()
		}
	}
	return ""
}

// NoSource returns the failure of a chart whose source has no stored artifact. The cause is the failure of the source in this
// run, or nil. It decides whether a retry may help, and is not part of the text.
func NoSource(kind, name string, cause error) error {
	return &Failure{
		Type:    sourcev1.FetchFailedCondition,
		Reason:  NoSourceArtifact,
		Message: "no artifact available for " + kind + " source '" + name + "'",
		Requeue: true,
		Err:     cause,
	}
}

// AsFailure returns the outermost Failure in err. An error without a Failure was not expected by the caller: it gets the
// reason Unknown. AsFailure(nil) is nil.
func AsFailure(err error) *Failure {
	var f *Failure
	if err == nil || errors.As(err, &f) {
		return f
	}
	errors.As(Unknown.Wrap(err), &f)
	return f
}
