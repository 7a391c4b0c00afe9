package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Distribution holds the versions of Flux that serve the objects.
type Distribution struct {
	versions []admission.FluxVersion // a single one unless the input installs several
	said     string                  // the file that installs it, "" for an assumed version
	given    bool                    // by the options
	option   string                  // the option that sets it
}

// distribution returns the version in the options, else the versions that the input installs, else the newest known one. It
// ignores versions in the input that it cannot parse.
func (o *Options) distribution(set *manifest.Set) (*Distribution, error) {
	if o.FluxVersion != "" {
		v, err := admission.ParseFlux(o.FluxVersion)
		if err != nil {
			return nil, &exit.UsageError{Option: "flux-version", Err: err}
		}
		return &Distribution{versions: []admission.FluxVersion{v}, given: true}, nil
	}
	d := &Distribution{option: o.FluxOption}
	for _, n := range set.FluxVersions() {
		v, err := admission.ParseFlux(n.Version)
		if err != nil || slices.Contains(d.versions, v) {
			continue
		}
		if d.versions = append(d.versions, v); d.said == "" {
			d.said = n.Pos.File
		}
	}
	if len(d.versions) == 0 {
		d.versions = []admission.FluxVersion{admission.NewestFlux}
	}
	return d, nil
}

// Serve returns how Flux serves an object. If there are several versions, it takes the best answer: any may be the object's.
func (d *Distribution) Serve(o *manifest.Object) (admission.FluxVersion, admission.Serving) {
	var best admission.Serving
	version := d.versions[0]
	for i, v := range d.versions {
		s := v.Serve(o.APIVersion, o.Kind)
		if i == 0 || s.Served && (!best.Served || best.Deprecated && !s.Deprecated) {
			version, best = v, s
		}
	}
	return version, best
}

// Judge returns the finding about the API version of an object, if any.
func (d *Distribution) Judge(o *manifest.Object) (finding.Finding, bool) {
	if o.Origin != nil {
		return finding.Finding{}, false
	}
	v, s := d.Serve(o)
	switch {
	case !s.Known:
		return finding.Finding{}, false
	case !s.Served:
		return validate.New(o, finding.RemovedVersion, d.refusal(o, v, s), d.hint(v, s), o.Excerpt("apiVersion")), true
	case s.Deprecated:
		return validate.New(o, finding.DeprecatedVersion, fmt.Sprintf("%s %s is deprecated, upgrade to %s", versionOf(o.APIVersion), o.Kind, versionOf(s.Upgrade)), "", o.Excerpt("apiVersion")), true
	}
	return finding.Finding{}, false
}

func versionOf(apiVersion string) string {
	_, version, _ := strings.Cut(apiVersion, "/")
	return version
}

func (d *Distribution) refusal(o *manifest.Object, v admission.FluxVersion, s admission.Serving) string {
	return fmt.Sprintf("no matches for kind %q in version %q: it is not served by Flux %s, %s", o.Kind, o.APIVersion, v, s.Why)
}

func (d *Distribution) hint(v admission.FluxVersion, s admission.Serving) string {
	upgrade := "there is no such kind in this Flux"
	if s.Upgrade != "" {
		upgrade = "write " + s.Upgrade
	}
	switch {
	case d.said != "":
		return fmt.Sprintf("%s; %s installs Flux %s", upgrade, d.said, v)
	case d.given:
		return upgrade
	}
	return fmt.Sprintf("%s, or set %s %s if the cluster runs that version", upgrade, d.option, s.Fits)
}

// refuse returns an error for an object that the given version of Flux does not serve. Without a given version, a fetch does not
// refuse objects for their API version: it converts them, as an older cluster would.
func (d *Distribution) refuse(o *manifest.Object) error {
	if v, s := d.Serve(o); d.given && s.Known && !s.Served {
		return admission.NotServed(o, d.refusal(o, v, s), d.hint(v, s))
	}
	return nil
}

// Replace replaces admission's findings about deprecated API versions by the finding for the version of Flux.
func (d *Distribution) Replace(o *manifest.Object, found []finding.Finding) []finding.Finding {
	found = slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Code == finding.DeprecatedVersion })
	if f, ok := d.Judge(o); ok {
		found = append([]finding.Finding{f}, found...)
	}
	return found
}
