package inventory

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// NoChartSourceError is a HelmRelease of Flux 1 that does not say where its chart is.
type NoChartSourceError struct{}

func (*NoChartSourceError) Error() string {
	return "could not find valid chart source configuration for release"
}

// Finding is what is wrong.
func (*NoChartSourceError) Finding() finding.Code { return finding.NoChartSource }

// Hint says what is needed.
func (*NoChartSourceError) Hint() string {
	return "spec.chart needs git and path, or repository, name and version"
}

// maxReleaseName is the longest name that Helm takes.
const maxReleaseName = 53

// ReleaseNameError is the name of a release that Helm does not take. The operator makes it as it is, and fails when it installs.
type ReleaseNameError struct{ name string }

func (e *ReleaseNameError) Error() string {
	return fmt.Sprintf("the release name '%s' has %d characters, Helm takes %d", e.name, len(e.name), maxReleaseName)
}

// Finding is what is wrong.
func (*ReleaseNameError) Finding() finding.Code { return finding.LongReleaseName }

// Hint names the field.
func (*ReleaseNameError) Hint() string { return "set spec.releaseName" }
