package reconcile

import (
	"errors"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
)

// BlockedBy names the object whose failure is the only reason for this one: the source of a chart or release, or a
// repository that is included. It is false where something is wrong with the object itself.
func (r *Result) BlockedBy() (kind, namespace, name string, ok bool) {
	if r.State != Failed || r.Failure == nil {
		return "", "", "", false
	}
	var include *noArtifactError
	var cycle *inventory.IncludeCycleError
	var rejected *inventory.RejectedError
	switch {
	case errors.As(r.Failure, &cycle):
		return "", "", "", false
	case errors.As(r.Failure, &include):
		return sourcev1.GitRepositoryKind, r.Object.Object.Namespace, include.name, true
	case errors.As(r.Failure, &rejected):
		return rejected.Object.Kind, rejected.Object.Namespace, rejected.Object.Name, true
	case CodeOf(r.Failure) == finding.SourceNotReady:
		return Kinds().SourceRef(r.Object)
	}
	return "", "", "", false
}
