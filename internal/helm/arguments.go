package helm

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxReleaseName is the limit of Helm for the name of a release, in characters.
const maxReleaseName = 53

// Release is a release to render.
type Release struct {
	Name, Namespace string
	// Chart is the absolute path of an archive.
	Chart string
	// Values is the text of a values file.
	Values []byte
	// Integers are expressions for --set.
	Integers []string
	// CRDs renders the files of the directory crds, too.
	CRDs bool
	// NoTests leaves out test hooks.
	NoTests bool
	// Upgrade renders for an upgrade, which templates see as .Release.IsUpgrade.
	Upgrade bool
	// NoSchema leaves out the check against values.schema.json.
	NoSchema    bool
	KubeVersion string
	APIVersions []string
}

// NameError reports a name that Helm or the API server refuses.
type NameError struct{ finding.Problem }

func wrongName(what, name, why string) error {
	return &NameError{finding.Problem{
		Text:   fmt.Sprintf("invalid %s %q: %s", what, name, why),
		Advice: fmt.Sprintf("use lower-case letters, digits and dashes; the name of a release has at most %d characters", maxReleaseName),
	}}
}

// arguments are the arguments of one call of helm. Only the functions of this file make them.
type arguments []string

// valuesFile is the name of the values file, in the directory that helm runs in.
const valuesFile = "values.yaml"

func versionArguments() arguments { return arguments{"version", "--template={{.Version}}"} }

// arguments returns the arguments that render the release. A flag and its value are one argument, and arguments after -- are not
// flags; the names have to be valid, too, so that no text of a manifest becomes a flag, however helm parses them.
func (r *Release) arguments() (arguments, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	args := arguments{"template", "--namespace=" + r.Namespace, "--values=" + valuesFile}
	for _, option := range []struct {
		on   bool
		flag string
	}{{r.CRDs, "--include-crds"}, {r.Upgrade, "--is-upgrade"}, {r.NoTests, "--skip-tests"}, {r.NoSchema, "--skip-schema-validation"}} {
		if option.on {
			args = append(args, option.flag)
		}
	}
	for _, expression := range r.Integers {
		args = append(args, "--set="+expression)
	}
	if r.KubeVersion != "" {
		args = append(args, "--kube-version="+r.KubeVersion)
	}
	for _, v := range r.APIVersions {
		args = append(args, "--api-versions="+v)
	}
	return append(args, "--", r.Name, r.Chart), nil
}

// check refuses names that Helm refuses for a release, or the API server for a namespace.
func (r *Release) check() error {
	why := validation.IsDNS1123Subdomain(r.Name)
	if len(r.Name) > maxReleaseName {
		why = append(why, validation.MaxLenError(maxReleaseName))
	}
	if len(why) > 0 {
		return wrongName("release name", r.Name, strings.Join(why, "; "))
	}
	if why := validation.IsDNS1123Label(r.Namespace); len(why) > 0 {
		return wrongName("namespace of the release", r.Namespace, strings.Join(why, "; "))
	}
	if !filepath.IsAbs(r.Chart) {
		return wrongName("path of the chart", r.Chart, "it is not absolute")
	}
	return nil
}
