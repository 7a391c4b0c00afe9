package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// charts holds the published charts of a repository. Errors of choose have no reason yet: the chart
// may be a dependency. A *downloadError reports that the version is known, but that its archive could
// not be fetched.
type charts interface {
	// choose selects a version of a chart by a version or range, "" for the newest. Equal calls return the same
	// version for the rest of the run. It may be called by several goroutines at once.
	choose(ctx context.Context, w *remarks, name, constraint string) (*resolvedChart, error)
	// refused attaches to an error of choose the reason that source-controller gives it.
	refused(err error) error
}

// resolvedChart is a selected version of a published chart, pinned to its bytes if the source
// publishes a digest. Each call of choose returns a new one, for one reconciliation or dependency,
// which alone may change its metadata.
type resolvedChart struct {
	Pin
	published string // the digest as the source writes it, "" if it has no digest
	// entry holds all data that the source publishes about this version, for the
	// fingerprint.
	entry any
	// id is equal for two choices of the same chart, within one run.
	id string
	// key identifies the bytes of the archive.
	key blob.Key
	// repository is the name of the repository in messages.
	repository string
	// deprecated is true if the source already reports the deprecation, before the archive is read.
	deprecated bool
	// local is true for a file on this machine. It is read again on every run: a file can change without a new version.
	local bool
	// locked is true if the archive is compared with the digest of a lock.
	locked bool
	time   time.Time // of publication, zero if unknown
	// fetch writes the archive.
	fetch    func(ctx context.Context, dst fetch.Sink, limit int64) error
	metadata map[string]string // of the artifact
	// provenance writes the provenance file of the archive, which names the archive as file.
	provenance func(ctx context.Context, dst fetch.Sink) error
	file       string
	// subject is the subject that a signature must have, nil if the chart cannot be signed.
	subject *verify.Subject
	// remote is the repository of a chart in a registry, nil for any other chart.
	remote func() (*remote.Repository, error)
}

// provenanceName is equal for equal archives of one source, and equal manifests of a registry.
func (c *resolvedChart) provenanceName() string {
	return c.file + " " + c.key.Digest.String() + " " + c.Manifest
}

// shown returns the name of an archive in messages.
func (c *resolvedChart) shown() string {
	if c.Source == PinRegistry {
		return c.URL
	}
	return c.Chart + " " + c.Version + " of " + c.repository
}

type downloadError struct {
	version string
	err     error
}

func (e *downloadError) Error() string {
	return fmt.Sprintf("chart download of version '%s' failed: %v", e.version, e.err)
}

func (e *downloadError) Unwrap() error { return e.err }

// limitsOf returns the limits for the archive of a chart.
func (r *Reconciler) limitsOf(chosen *resolvedChart) chart.Limits {
	return r.limits.Named(archiveName(status.Build{Name: chosen.Chart, Version: chosen.Version}))
}

// checkArchive returns an error if Helm could not load the archive, or if it
// holds another chart than the requested one.
func (r *Reconciler) checkArchive(t *remarks, archive io.Reader, chosen *resolvedChart) (*helmchart.Metadata, error) {
	metadata, warned, err := chart.Check(archive, r.limitsOf(chosen))
	t.warnEach(finding.OddSource, warned)
	var invalid helmchart.ValidationError
	switch {
	case errors.As(err, &invalid):
		return nil, fmt.Errorf("failed to validate metadata of written chart: %w", err)
	case err != nil:
		return nil, fmt.Errorf("failed to load chart metadata from written chart: %w", err)
	}
	return metadata, r.checkIdentity(t, metadata, chosen)
}

func (r *Reconciler) checkIdentity(t *remarks, metadata *helmchart.Metadata, chosen *resolvedChart) error {
	if chart.MatchName(metadata.Name, chosen.Chart) && chart.MatchVersion(metadata.Version, chosen.Version) {
		if metadata.Deprecated && !chosen.deprecated {
			t.warnAs(finding.DeprecatedChart, "chart '%s' version '%s' is deprecated", chosen.Chart, chosen.Version)
		}
		return nil
	}
	mismatch := &finding.Problem{
		Code: finding.OtherChart, Class: finding.Untrusted, Advice: finding.AllowMismatch,
		Text: fmt.Sprintf("the archive holds chart '%s' version '%s', not '%s' version '%s'", metadata.Name, metadata.Version, chosen.Chart, chosen.Version),
	}
	if r.o.AllowNameMismatch {
		t.warnAs(finding.AcceptedChart, "%v", mismatch)
		return nil
	}
	return mismatch
}

// pullFailure attaches the reason to the failure of a download.
func pullFailure(err error) error {
	if fetch.AuthFailure(err) {
		return status.AuthenticationFailed.Wrap(fmt.Errorf("failed to authenticate with the Helm repository: %w", status.ChartPullError.Wrap(err)))
	}
	return status.ChartPullError.Wrap(err)
}

// archiveName returns the file name of a built chart. If the name has slashes,
// only its last element is used; the store ensures that no name refers to
// another file.
func archiveName(build status.Build) string {
	return path.Base(build.Name) + "-" + build.Version + ".tgz"
}
