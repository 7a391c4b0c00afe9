package reconcile

import (
	"errors"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

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
	var dir *store.DirectoryError
	if errors.As(err, &dir) {
		return status.DirectoryCreationFailed.Wrap(err)
	}
	return otherwise.Wrap(err)
}
