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

// CodeOf says what kind of mistake is behind the failure of an object. Its errors say it themselves; what is left are
// those of other modules, and the reason of the condition. The text of an error never counts.
func CodeOf(err error) finding.Code {
	failure := status.AsFailure(err)
	if failure == nil {
		return ""
	}
	return cmp.Or(codeOf(failure), fetch.CodeOf(failure), failure.Reason.Finding())
}

// codeOf is what an error says of itself, or package regexp.
func codeOf(err error) finding.Code {
	code := finding.CodeOf(err)
	if code == "" && is[*syntax.Error](err) {
		return finding.InvalidExpression
	}
	return code
}

// is reports whether an error's chain has an error of the type.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// temporaryFailure has Flux's text, which is another one than that of a directory
// in storage.
func temporaryFailure(err error) error {
	return &status.Failure{
		Type: sourcev1.StorageOperationFailedCondition, Reason: status.DirectoryCreationFailed,
		Message: "failed to create temporary working directory: " + err.Error(), Err: err,
	}
}

// storageFailure attaches the storage's own reason where it has one.
func storageFailure(err error, otherwise status.Reason) error {
	if _, ok := errors.AsType[*store.DirectoryError](err); ok {
		return status.DirectoryCreationFailed.Wrap(err)
	}
	return otherwise.Wrap(err)
}

// What cannot be stored, in Flux's words.
const (
	unsavedIndex = "unable to save artifact to storage"
	unsavedTree  = "unable to archive artifact to storage"
	unsavedLayer = "unable to copy artifact to storage"
	unsavedChart = "unable to copy Helm chart to storage"
)

func unsaved(what string, err error) error {
	return storageFailure(fmt.Errorf("%s: %w", what, err), status.ArchiveOperationFailed)
}
