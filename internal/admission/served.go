package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// FluxVersion is a minor version of Flux 2, or beforeFlux2.
type FluxVersion int

// beforeFlux2 is any version 0 of Flux 2. It serves the API versions of the last one.
const beforeFlux2 FluxVersion = -1

// NewestFlux is the last minor version in the table.
const NewestFlux FluxVersion = 9

func (v FluxVersion) String() string {
	if v == beforeFlux2 {
		return "0.41"
	}
	return "2." + strconv.Itoa(int(v))
}

// maxPatch is above the patches of any minor version, and represents the last one.
const maxPatch = 999

// ParseFlux parses a version of Flux as people write it: 2.8, v2.8.1, or a range as in a FluxInstance. For a range it returns the
// newest known minor version that matches. A minor version that is not known yet counts as the newest known one.
func ParseFlux(text string) (FluxVersion, error) {
	if v, err := semver.NewVersion(strings.TrimSpace(text)); err == nil {
		if v.Major() == 0 {
			return beforeFlux2, nil
		}
		if v.Major() != 2 {
			return 0, fmt.Errorf("%q is not a version of Flux 2", text)
		}
		return FluxVersion(min(v.Minor(), uint64(NewestFlux))), nil
	}
	c, err := semver.NewConstraint(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a version of Flux", text)
	}
	for v := NewestFlux; v >= 0; v-- {
		if c.Check(semver.New(2, uint64(v), maxPatch, "", "")) || c.Check(semver.New(2, uint64(v), 0, "", "")) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%q matches no known version of Flux 2", text)
}

// span is an API version with the minor versions of Flux that serve it: from the first, and before the second.
type span struct {
	version     string
	from, until FluxVersion
}

const (
	ever                = beforeFlux2
	forever FluxVersion = 1 << 30
)

// servedBy lists the API versions that Flux distributions serve, by group and kind, the newest first. A version is deprecated as
// soon as there is a newer one.
var servedBy = map[string]map[string][]span{
	manifest.SourceGroup: {
		"GitRepository":    {{"v1", 0, forever}, {"v1beta2", ever, 8}, {"v1beta1", ever, 7}},
		"HelmRepository":   {{"v1", 3, forever}, {"v1beta2", ever, 8}, {"v1beta1", ever, 7}},
		"HelmChart":        {{"v1", 3, forever}, {"v1beta2", ever, 8}, {"v1beta1", ever, 7}},
		"Bucket":           {{"v1", 4, forever}, {"v1beta2", ever, 8}, {"v1beta1", ever, 7}},
		"OCIRepository":    {{"v1", 6, forever}, {"v1beta2", ever, 8}},
		"ExternalArtifact": {{"v1", 7, forever}},
	},
	manifest.ExtensionsGroup: {
		"ArtifactGenerator": {{"v1beta1", 7, forever}},
	},
	manifest.KustomizeGroup: {
		"Kustomization": {{"v1", 0, forever}, {"v1beta2", ever, 8}, {"v1beta1", ever, 7}},
	},
	manifest.ReleaseGroup: {
		"HelmRelease": {{"v2", 3, forever}, {"v2beta2", 2, 8}, {"v2beta1", ever, 7}},
	},
	manifest.ImageGroup: {
		"ImageRepository":       {{"v1", 7, forever}, {"v1beta2", ever, 9}, {"v1beta1", ever, 7}},
		"ImagePolicy":           {{"v1", 7, forever}, {"v1beta2", ever, 9}, {"v1beta1", ever, 7}},
		"ImageUpdateAutomation": {{"v1", 7, forever}, {"v1beta2", 3, 9}, {"v1beta1", ever, 7}},
	},
	manifest.NotificationGroup: {
		"Alert":    {{"v1beta3", 2, forever}, {"v1beta2", ever, 9}, {"v1beta1", ever, 7}},
		"Provider": {{"v1beta3", 2, forever}, {"v1beta2", ever, 9}, {"v1beta1", ever, 7}},
		"Receiver": {{"v1", 0, forever}, {"v1beta2", ever, 9}, {"v1beta1", ever, 7}},
	},
}

// Serving reports how a version of Flux serves the API version of an object.
type Serving struct {
	Known      bool // the table has this version of the kind; otherwise the other fields are empty
	Served     bool
	Deprecated bool        // served, but a newer one exists
	Upgrade    string      // the apiVersion to write with this Flux
	Why        string      // why it is not served: it was removed by a version, or is not there before one
	Fits       FluxVersion // if it is not served: the nearest version of Flux that serves it
}

// Serve returns how a version of Flux serves the apiVersion of a kind.
func (v FluxVersion) Serve(apiVersion, kind string) Serving {
	group, version, _ := strings.Cut(apiVersion, "/")
	spans := servedBy[group][kind]
	at := slices.IndexFunc(spans, func(s span) bool { return s.version == version })
	if at < 0 {
		return Serving{}
	}
	own := spans[at]
	s := Serving{Known: true, Served: own.from <= v && v < own.until}
	if newest := slices.IndexFunc(spans, func(s span) bool { return s.from <= v && v < s.until }); newest >= 0 {
		s.Upgrade = group + "/" + spans[newest].version
		s.Deprecated = s.Served && newest < at
	}
	switch {
	case v >= own.until:
		s.Why, s.Fits = fmt.Sprintf("%s removed it", own.until), own.until-1
	case v < own.from:
		s.Why, s.Fits = fmt.Sprintf("there is none before %s", own.from), own.from
	}
	return s
}
