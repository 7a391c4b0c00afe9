package inventory

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxReleaseName is the longest name that Helm takes.
const maxReleaseName = 53

// ReleaseNameError is the name of a release that Helm does not take. The operator makes it as it is, and fails when it installs.
type ReleaseNameError struct {
	name  string
	given bool // in spec.releaseName
}

func (e *ReleaseNameError) Error() string {
	return fmt.Sprintf("the release name '%s' has %d characters, Helm takes %d", e.name, len(e.name), maxReleaseName)
}

// Finding is what is wrong.
func (*ReleaseNameError) Finding() finding.Code { return finding.RefusedName }

// Path is the field that the name comes from.
func (e *ReleaseNameError) Path() []any {
	if e.given {
		return []any{"spec", "releaseName"}
	}
	return []any{"metadata", "name"}
}

// Hint names the field.
func (*ReleaseNameError) Hint() string { return "set spec.releaseName" }
