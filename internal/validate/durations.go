package validate

import (
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// A value outside of these is probably a mistake.
const (
	shortestInterval = time.Minute
	longestInterval  = 366 * 24 * time.Hour
	shortestTimeout  = time.Second
)

// durations judges the intervals and timeouts that are written down; defaults are
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

// duration is one that the object itself has.
func (v *validation) duration(field string) (time.Duration, bool) {
	text, ok := manifest.ValueAt(v.adm.Object.Content, []any{"spec", field}).(string)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// isSource reports whether the object is fetched by itself: a HelmChart has its time limit from its source.
func (v *validation) isSource() bool {
	return v.adm.Object.Group() == manifest.SourceGroup && v.adm.Object.Kind != sourcev1.HelmChartKind
}
