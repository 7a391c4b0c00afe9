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

// Options are the choices of one run. The caller of New makes them; they do not change.
type Options struct {
	// Until is how far objects are taken.
	Until Line
	// List stops before versions are chosen, at what is published. It goes with Choose; sources that publish no
	// versions are not asked.
	List bool
	// Level is how far exact versions may be moved, "" for not at all. It goes with List.
	Level resolve.Level
	// Verify checks signatures although nothing is fetched, and fails an object whose
	// stored artifact was altered. It goes with Choose.
	Verify bool
	// Refresh rebuilds everything instead of reusing artifacts.
	Refresh bool
	// Concurrency is the number of objects in flight.
	Concurrency int
	// Retries is the number of further attempts after a transient failure.
	Retries int
	// IndexMax bounds an index, in bytes; Chart bounds the charts.
	IndexMax int64
	Chart    chart.Limits
	// IndexDigest says what to do with an archive that is not the index's: enforce,
	// warn or ignore.
	IndexDigest string
	// AllowNameMismatch accepts an archive whose name or version is another than
	// the requested one.
	AllowNameMismatch bool
	// Cluster is the directory of the cluster of the input, "" without one.
	Cluster string
	// Locked is what objects were resolved to before, nil to choose again.
	Locked *Locked
	// Directories replace source objects, by key.
	Directories map[store.Key]string
	// SkipTLSVerify verifies no certificate of a source's server. No login of the machine is used then.
	SkipTLSVerify bool
	// Decisions reports what is decided about each object: see [Progress].
	Decisions bool
	// Finished are the results of an earlier part of the run, whose reconciler is not closed yet: what has not changed since
	// is not reconciled again.
	Finished map[store.Key]*Result
	// Archives are the only ones that count in the directory of a HelmRepository, relative to it; nil counts all.
	Archives map[store.Key][]string
	// Ambient lets the user's own registry logins stand in where no Secret is named.
	Ambient bool
	// Reach is how far they, and the identity of the machine, may go.
	Reach auth.Reach
	// PrivateRedirects follows redirects from public hosts to private addresses, also with a login of this machine.
	PrivateRedirects bool
	// RegistryConfig is the file to read them from, "" for the usual ones.
	RegistryConfig string
	// RepositoryConfig is Helm's repositories.yaml, "" for the usual one.
	RepositoryConfig string
	// MissingSecrets says what stands in for a Secret that is not in the input: one
	// of the constants of credential.
	MissingSecrets string
	// Trust is what keyless signatures rest on where no Secret says so, nil for the
	// public Sigstore's. TrustCache is the directory that keeps that one for a day,
	// "" for none.
	Trust      *verify.Trust
	TrustCache string
	// Keyring has charts without spec.verify checked against their provenance
	// files; VerifyDependencies those that packaged charts require, too.
	Keyring            *verify.Keyring
	VerifyDependencies bool
	// RequireVerification fails charts that are not verified.
	RequireVerification bool
	// AdvertisedAddress is where the artifacts directory is served; empty means
	// file:// URLs.
	AdvertisedAddress string
	// DigestAlgorithm makes the revisions of buckets; empty means SHA-256.
	DigestAlgorithm string
	// Cache keeps what is downloaded for later runs; may be nil. The caller closes it.
	Cache *cache.Cache
	// Carry takes what is fetched to another place, nil for none.
	Carry Carrier
	// Offline opens no connection: what the cache does not have is an error. Online is the command that would get it.
	Offline bool
	Online  string
	// From is the name of the bundle that stands for the cache, "" for none.
	From string
}

// Line is where the way of an object is cut.
type Line int

const (
	// Fetch takes objects into storage, and remembers what became of them.
	Fetch Line = iota
	// Choose stops once each object is resolved, and it is known what a controller would see
	// at that moment. Nothing is stored or remembered.
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

// Edges are a run's connections to the world.
type Edges struct {
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	Getenv    func(string) string
	Now       func() time.Time
	UserAgent string
}

// A Carrier takes to another place what a run fetches. It is asked about each object and each dependency of a chart, by many
// goroutines.
type Carrier interface {
	// Image takes what a registry has under a digest and, unless it is empty, under a tag, with all that refers to it.
	Image(ctx context.Context, from *remote.Repository, d digest.Digest, tag string) error
	// Archive takes a chart of a repository with an index, which is called by its URL, and the provenance file of the chart,
	// nil if it has none. A chart that was packaged of the files of a source is called by the URL of that.
	Archive(ctx context.Context, repository string, archive *io.SectionReader, provenance []byte, packaged bool) error
	// Refused records that a source does not say whether it has something: it is not carried.
	Refused(what string, err error)
}

// Progress is called as a run goes on. Its methods are called from many goroutines,
// except for one object in order.
type Progress interface {
	Started(*admission.Admitted)
	Transferred(*admission.Admitted, fetch.Progress)
	// Decided is called with a decision about an object, in words, if [Options.Decisions] is set.
	Decided(adm *admission.Admitted, decision string)
	// Waiting is called when another process has had the object for a second, and with false when it has it no more.
	Waiting(adm *admission.Admitted, waiting bool)
	Finished(*Result)
}
