package inventory

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
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
func (*ReleaseNameError) Finding() finding.Code { return finding.LongReleaseName }

// Path is the field that the name comes from.
func (e *ReleaseNameError) Path() []any {
	if e.given {
		return []any{"spec", "releaseName"}
	}
	return []any{"metadata", "name"}
}

// Hint names the field.
func (*ReleaseNameError) Hint() string { return "set spec.releaseName" }

// TakenNameError is a HelmRelease of Flux 1 whose HelmChart would have the name of another.
type TakenNameError struct{ other *manifest.Object }

func (e *TakenNameError) Error() string {
	return fmt.Sprintf("%s is in the input as well: only one of them can have the name", e.other)
}

// Finding is what is wrong.
func (*TakenNameError) Finding() finding.Code { return finding.ChartClash }

// Path is the field that the name comes from.
func (*TakenNameError) Path() []any { return []any{"metadata", "name"} }

// Hint says which one can have another name.
func (e *TakenNameError) Hint() string {
	return fmt.Sprintf("the HelmChart of a HelmRelease of Flux 1 is called %sNAMESPACE-NAME: rename the one at %s", operatorPrefix, e.other.Pos)
}
