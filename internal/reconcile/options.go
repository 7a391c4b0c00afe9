package reconcile

import (
	"context"
	"io"
	"net"
	"time"

	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// Options holds the options of one run. The caller of [Connect] and [Connections.Reconciler] sets them; they do not change.
type Options struct {
	// Until is the point at which the reconciliation of an object ends.
	Until Line
	// List reports the published versions instead of selecting one. It requires Choose; sources that publish no
	// versions are not requested.
	List bool
	// Level is the largest part of an exact version that may change, "" for no change. It requires List.
	Level resolve.Level
	// Verify verifies signatures although nothing is fetched, and fails an object
	// whose stored artifact was altered. It requires Choose.
	Verify bool
	// Refresh rebuilds everything instead of reusing artifacts.
	Refresh bool
	// Concurrency is the number of objects that are reconciled at the same time.
	Concurrency int
	// Retries is the number of retries after a transient failure.
	Retries int
	// IndexMax is the limit, in bytes, of an index; Chart holds the limits of charts.
	IndexMax int64
	Chart    chart.Limits
	// IndexDigest is the policy for an archive that does not match the index's
	// digest: enforce, warn or ignore.
	IndexDigest string
	// AllowNameMismatch accepts an archive whose name or version differs from the
	// requested one.
	AllowNameMismatch bool
	// Cluster is the directory of the input's cluster, or "".
	Cluster string
	// Locked is the lock to apply, nil to resolve every object.
	Locked *Locked
	// Directories replace source objects, by key.
	Directories map[store.Key]StandIn
	// SkipTLSVerify skips the verification of the certificates of sources. No login of the machine is sent then.
	SkipTLSVerify bool
	// Decisions reports the decisions about each object: see [Progress].
	Decisions bool
	// Finished holds the results of an earlier part of the run, whose reconciler is not closed yet: objects that have not
	// changed since are not reconciled again.
	Finished map[store.Key]*Result
	// Ambient uses the user's own registry logins if no Secret is named.
	Ambient bool
	// Reach restricts the servers to which they, and the identity of the machine, are sent.
	Reach auth.Reach
	// PrivateRedirects follows redirects from public hosts to private addresses, also with a login of this machine.
	PrivateRedirects bool
	// RegistryConfig is the file of these logins, "" for the default files.
	RegistryConfig string
	// RepositoryConfig is Helm's repositories.yaml, "" for the default file.
	RepositoryConfig string
	// MissingSecrets is the treatment of a Secret that is not in the input: a
	// constant of package credential.
	MissingSecrets string
	// Trust is the trusted root for keyless signatures if no Secret has one, nil
	// for the public Sigstore's. TrustCache is the directory that caches the public
	// root for a day, "" for no cache.
	Trust      *verify.Trust
	TrustCache string
	// Keyring verifies charts without spec.verify with their provenance files;
	// VerifyDependencies also verifies the dependencies of packaged charts.
	Keyring            *verify.Keyring
	VerifyDependencies bool
	// RequireVerification fails charts that are not verified.
	RequireVerification bool
	// AdvertisedAddress is the address of the server of the artifacts directory; ""
	// means file:// URLs.
	AdvertisedAddress string
	// DigestAlgorithm is the algorithm for the revisions of buckets; "" means SHA-256.
	DigestAlgorithm string
	// Cache holds downloads for later runs; it may be nil. The caller closes it.
	Cache *cache.Cache
	// Carry receives the fetched artifacts, to copy them; it may be nil.
	Carry Carrier
	// Offline opens no connection: data missing from the cache is an error. Online is the command that would fetch it.
	Offline bool
	Online  string
	// From is the name of the bundle that serves as the cache, or "".
	From string
}

// StandIn is a local directory or file that replaces a source.
type StandIn struct {
	Path string // absolute
	// Archives restricts the archives in the directory of a HelmRepository to these relative paths, with slashes; nil means all.
	Archives []string
}

// Line is the point at which a reconciliation ends.
type Line int

const (
	// Fetch stores artifacts and records the results.
	Fetch Line = iota
	// Choose stops when each object is resolved, and the status that a controller would set
	// at that moment is known. Nothing is stored or recorded.
	Choose
)

func (o *Options) checksSignatures() bool { return o.Until == Fetch || o.Verify }

func (o Options) digestPolicy() fetch.DigestPolicy {
	switch o.IndexDigest {
	case "warn":
		return fetch.DigestWarn
	case "ignore":
		return fetch.DigestIgnore
	}
	return fetch.DigestEnforce
}

// Edges holds the connections of a run to its environment.
type Edges struct {
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	Getenv    func(string) string
	Now       func() time.Time
	UserAgent string
}

// Carrier copies the artifacts of a run to another place. It is called for each object and each dependency of a chart, by
// several goroutines at once.
type Carrier interface {
	// Image copies the artifact with a digest from a registry, its tag if that is not empty, and all artifacts that refer to it.
	Image(ctx context.Context, from *remote.Repository, d digest.Digest, tag string) error
	// Archive copies a chart and its provenance file, which may be nil. The repository is the URL of the Helm repository or,
	// for a chart that was packaged from a tree, the URL of its source.
	Archive(ctx context.Context, repository string, archive *io.SectionReader, provenance []byte, packaged bool) error
	// Refused records a file that is not copied, because the source does not report whether it exists.
	Refused(what string, err error)
}

// Progress receives the progress of a run. Its methods are called by several
// goroutines at once, in order for each object.
type Progress interface {
	Started(*admission.Admitted)
	Transferred(*admission.Admitted, fetch.Progress)
	// Decided is called with the text of a decision about an object, if [Options.Decisions] is set.
	Decided(adm *admission.Admitted, decision string)
	// Waiting is called with true when another process has held the object for a second, and with false when it has released it.
	Waiting(adm *admission.Admitted, waiting bool)
	Finished(*Result)
}
