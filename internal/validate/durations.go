package validate

import (
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// A value outside of these limits is probably a mistake.
const (
	shortestInterval = time.Minute
	longestInterval  = 366 * 24 * time.Hour
	shortestTimeout  = time.Second
)

// durations checks the intervals and timeouts in the file; defaults are
// not the user's mistake.
func (v *validation) durations() {
	interval, given := v.duration("interval")
	switch {
	case given && interval < shortestInterval:
		v.warn(finding.ShortInterval, fmt.Sprintf("spec.interval of %s is shorter than a minute", interval), "spec", "interval")
	case given && interval > longestInterval:
		v.warn(finding.ShortInterval, fmt.Sprintf("spec.interval of %s is longer than a year", interval), "spec", "interval")
	}
	timeout, limited := v.duration("timeout")
	switch {
	case limited && timeout < shortestTimeout:
		v.warn(finding.ShortInterval, fmt.Sprintf("spec.timeout of %s is shorter than a second", timeout), "spec", "timeout")
	case limited && given && v.isSource() && timeout > interval:
		v.warn(finding.ShortInterval, fmt.Sprintf("spec.timeout of %s is longer than spec.interval of %s", timeout, interval), "spec", "timeout")
	}
}

// duration returns a duration in the object itself, without defaults.
func (v *validation) duration(field string) (time.Duration, bool) {
	text, ok := manifest.ValueAt(v.adm.Object.Content, []any{"spec", field}).(string)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// isSource reports whether the object is a source with a timeout: a HelmChart is fetched with the timeout of its source.
func (v *validation) isSource() bool {
	return v.adm.Object.Group() == manifest.SourceGroup && v.adm.Object.Kind != sourcev1.HelmChartKind
}
