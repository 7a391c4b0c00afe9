package status

import (
	"fmt"
	"strconv"
)

// StoredRevision is the success of a HelmRepository.
func StoredRevision(revision string) *Observation {
	return &Observation{Succeeded, "stored artifact for revision '" + revision + "'"}
}

// StoredDigest is the success of an OCIRepository, whose revision it calls a digest.
func StoredDigest(revision string) *Observation {
	return &Observation{Succeeded, "stored artifact for digest '" + revision + "'"}
}

// NewDigest is the sight of an artifact in a registry that is not the stored one. The name has a tag or a digest.
func NewDigest(revision, name string) *Observation {
	return &Observation{NewRevision, "new revision '" + revision + "' for '" + name + "'"}
}

// NewIndex is the sight of an index that is not the stored one.
func NewIndex(revision string) *Observation {
	return &Observation{NewRevision, "new index revision '" + revision + "'"}
}

// A Build is a chart on its way into storage.
type Build struct {
	Name, Version string
	Stage         Stage
	ValuesFiles   []string // those that were merged
}

// A Stage is how far a build has got.
type Stage int

// A chart is new once its version is known. In the end it was pulled, if its bytes are the publisher's, or packaged.
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

// Seen is the sight of a chart that is not the stored one.
func (b Build) Seen() *Observation { return &Observation{NewChart, b.Summary()} }

// Stored is the success of a HelmChart.
func (b Build) Stored() *Observation {
	if b.Stage == Packaged {
		return &Observation{ChartPackageSucceeded, b.Summary()}
	}
	return &Observation{ChartPullSucceeded, b.Summary()}
}

// Verified is the message of a chart's SourceVerified=True.
func (b Build) Verified() string { return "verified signature of version " + b.Version }

// FetchedIndex announces a stored index. The URL must hold no credentials. A negative size is unknown.
func FetchedIndex(size int64, url string) string {
	human := "unknown size"
	if size >= 0 {
		human = "size " + humanSize(size)
	}
	return fmt.Sprintf("fetched index of %s from '%s'", human, url)
}

// humanSize prints a size in powers of 1000 with four significant digits, as source-controller does.
func humanSize(bytes int64) string {
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	size, unit := float64(bytes), 0
	for size >= 1000 && unit < len(units)-1 {
		size /= 1000
		unit++
	}
	return strconv.FormatFloat(size, 'g', 4, 64) + units[unit]
}
