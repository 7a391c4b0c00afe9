package status

import (
	"fmt"
	"strconv"
)

// StoredRevision returns the success of a HelmRepository.
func StoredRevision(revision string) *Observation {
	return &Observation{Succeeded, "stored artifact for revision '" + revision + "'"}
}

// StoredDigest returns the success of an OCIRepository, which calls its revision a digest.
func StoredDigest(revision string) *Observation {
	return &Observation{Succeeded, "stored artifact for digest '" + revision + "'"}
}

// NewDigest returns the observation of an artifact that differs from the stored one. The name has a tag or a digest.
func NewDigest(revision, name string) *Observation {
	return &Observation{NewRevision, "new revision '" + revision + "' for '" + name + "'"}
}

// NewIndex returns the observation of an index that differs from the stored one.
func NewIndex(revision string) *Observation {
	return &Observation{NewRevision, "new index revision '" + revision + "'"}
}

// A Build is a chart that is about to be stored.
type Build struct {
	Name, Version string
	Stage         Stage
	ValuesFiles   []string // the merged files
}

// A Stage is the progress of a build.
type Stage int

// A chart is New once its version is known. It is Pulled if its bytes are the publisher's, or Packaged.
const (
	New Stage = iota
	Pulled
	Packaged
)

// Summary describes the build in a message.
func (b Build) Summary() string {
	if b.Name == "" || b.Version == "" {
		return "no chart build"
	}
	verb := [...]string{New: "new", Pulled: "pulled", Packaged: "packaged"}[b.Stage]
	summary := fmt.Sprintf("%s '%s' chart with version '%s'", verb, b.Name, b.Version)
	if len(b.ValuesFiles) > 0 {
		summary += fmt.Sprintf(" and merged values files %v", b.ValuesFiles)
	}
	return summary
}

// Seen returns the observation of a chart that differs from the stored one.
func (b Build) Seen() *Observation { return &Observation{NewChart, b.Summary()} }

// Stored returns the success of a HelmChart.
func (b Build) Stored() *Observation {
	if b.Stage == Packaged {
		return &Observation{ChartPackageSucceeded, b.Summary()}
	}
	return &Observation{ChartPullSucceeded, b.Summary()}
}

// Verified returns the message of a chart's SourceVerified=True.
func (b Build) Verified() string { return "verified signature of version " + b.Version }

// FetchedIndex returns the message about a stored index. The URL must not contain credentials. A negative size is unknown.
func FetchedIndex(size int64, url string) string {
	human := "unknown size"
	if size >= 0 {
		human = "size " + humanSize(size)
	}
	return fmt.Sprintf("fetched index of %s from '%s'", human, url)
}

// humanSize returns a size in powers of 1000 with four significant digits, as source-controller does.
func humanSize(bytes int64) string {
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	size, unit := float64(bytes), 0
	for size >= 1000 && unit < len(units)-1 {
		size /= 1000
		unit++
	}
	return strconv.FormatFloat(size, 'g', 4, 64) + units[unit]
}
