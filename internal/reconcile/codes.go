package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"regexp/syntax"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// CodeOf returns the finding code for the failure of an object: the code that the error itself has, else that of a
// known error type of another module, else that of the condition's reason. It never depends on the text of an error.
func CodeOf(err error) finding.Code {
	failure := status.AsFailure(err)
	if failure == nil {
		return ""
	}
	return cmp.Or(codeOf(failure), fetch.CodeOf(failure), failure.Reason.Finding())
}

// codeOf returns the code that the error has, or the code of an error of package regexp.
func codeOf(err error) finding.Code {
	code := finding.CodeOf(err)
	if code == "" && is[*syntax.Error](err) {
		return finding.InvalidExpression
	}
	return code
}

// is reports whether the chain of an error contains an error of type E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// temporaryFailure returns a failure with Flux's text for a temporary directory,
// which differs from the text for a directory in storage.
func temporaryFailure(err error) error {
	return &status.Failure{
		Type: sourcev1.StorageOperationFailedCondition, Reason: status.DirectoryCreationFailed,
		Message: "failed to create temporary working directory: " + err.Error(), Err: err,
	}
}

// storageFailure attaches the storage's own reason if the error has one, otherwise the given reason.
func storageFailure(err error, otherwise status.Reason) error {
	if _, ok := errors.AsType[*store.DirectoryError](err); ok {
		return status.DirectoryCreationFailed.Wrap(err)
	}
	return otherwise.Wrap(err)
}

// alteredArtifact returns the error of a stored artifact whose bytes have changed.
func alteredArtifact(path string, err error) error {
	return &finding.Problem{
		Code: finding.ArtifactAltered, Class: finding.Untrusted, Text: fmt.Sprintf("failed to verify integrity of artifact %s: %v", path, err),
		Advice: "the next 'helmsrc fetch' fetches it again", Err: err,
	}
}

// Failures to store an artifact, in Flux's words.
const (
	unsavedIndex = "unable to save artifact to storage"
	unsavedTree  = "unable to archive artifact to storage"
	unsavedLayer = "unable to copy artifact to storage"
	unsavedChart = "unable to copy Helm chart to storage"
)

func unsaved(what string, err error) error {
	return storageFailure(fmt.Errorf("%s: %w", what, err), status.ArchiveOperationFailed)
}
