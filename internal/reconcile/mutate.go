package reconcile

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// mutateVersion is the version of a chart as helm-controller writes it into a
// release, and the digest of the revision that it comes from. Only artifacts whose
// revision is a digest put it into the version.
func mutateVersion(version string, source *Result) (mutated, digest string, err error) {
	kind, revision := source.Object.Object.Kind, source.artifact().Revision
	if kind == sourcev1.HelmChartKind || kind == sourcev1.ExternalArtifactKind && !strings.Contains(revision, ":") {
		return version, "", nil // the revision of a chart, also where a generator took it over
	}
	return versionOfRevision(version, revision)
}

// versionOfRevision puts the beginning of a revision's digest into a version, in the
// place of whatever metadata it had. A tag that is a version has to be the chart's.
func versionOfRevision(version, revision string) (mutated, digest string, err error) {
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return "", "", fmt.Errorf("invalid chart version %s", version)
	}
	tag, digest, tagged := strings.Cut(revision, "@")
	if !tagged {
		tag, digest = "", revision
	}
	if tagVersion, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+")); tagged && err == nil {
		if strings.Contains(digest, "@") || !tagVersion.Equal(parsed) {
			return "", "", &finding.Problem{
				Code: finding.ChartTag, Text: fmt.Sprintf("artifact revision %s does not match chart version %s", tag, version), Advice: tagHint(tag),
			}
		}
	}
	_, hex, ok := strings.Cut(digest, ":")
	if !ok || strings.Contains(hex, ":") || len(hex) < revisionLength {
		return "", "", fmt.Errorf("invalid artifact revision %s", revision)
	}
	suffixed, err := parsed.SetMetadata(hex[:revisionLength])
	if err != nil {
		return "", "", fmt.Errorf("invalid artifact revision %s", revision)
	}
	return suffixed.String(), digest, nil
}

// tagHint is for a tag that reads as a version, but not as the chart's.
func tagHint(tag string) string {
	if strings.Count(tag, ".") < 2 {
		return fmt.Sprintf("helm-controller takes the tag '%s' for a version: name the chart's own tag, or use spec.ref.semver", tag)
	}
	return "the tag of a chart has to be its version"
}
