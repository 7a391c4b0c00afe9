// Package reconcile reconciles each object from its spec to its status, once.
// It alone determines the order of the steps and attaches reasons to errors. It
// does not print and does not read flags.
package reconcile

import (
	"net/http"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
	"github.com/helmsrc/helmsrc/internal/verify"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Reconciler reconciles the objects of one cluster. [Connections.Reconciler] returns one; Close releases the files that it
// opened. Its fields are common to all objects and do not change, except the memos, which may be used by several goroutines
// at once.
type Reconciler struct {
	*Connections
	kinds     Table
	inventory *inventory.Inventory
	secrets   *credential.Reader
	store     *store.Store // not written to with Choose
	o         Options
	limits    chart.Limits
	progress  Progress

	results work.Memo[store.Key, *Result]
	opened  work.Memo[store.Key, *repository]
	stored  work.Memo[store.Key, *indexFile] // indexes of earlier runs

	looked    map[store.Key][]string // at paths of GitRepositories
	generates bool                   // artifacts

	sourceRules work.Memo[string, *tree.Rules] // of .sourceignore files, by directory

	outputs work.Memo[store.Key, *generatedArtifacts] // of ArtifactGenerators
	sources work.Memo[store.Key, *manifest.Object]    // that only a directory replaces

	closers closers
	temp    store.Scratch // for files that are removed when the run ends
}

// generatedArtifacts holds the artifacts of a generator, and the error that ended their generation.
type generatedArtifacts struct {
	artifacts []generate.Artifact
	err       error
}

// Connections holds the clients, downloads and answers that the reconcilers of one command share, for all clusters.
// Answers are kept by identity. [Connect] returns them; Close ends them. They may be used by several goroutines at once.
type Connections struct {
	client     *fetch.Client
	registries *oci.Client // shares client
	now        func() time.Time
	getenv     func(string) string
	cache      *cache.Cache // may be nil
	blobs      *blob.Pool   // all that is downloaded, except indexes and trees

	indexes     work.Memo[string, *indexFile]
	tags        work.Memo[chartKey, []string]
	pinned      work.Memo[chartKey, *oci.Manifest]
	plain       work.Memo[string, bool]            // by host and settings of the connection
	moving      work.Memo[chartKey, digest.Digest] // tags of OCIRepositories
	artifacts   work.Memo[chartKey, *oci.Artifact] // by digest
	signers     work.Memo[signatureKey, *verify.Signer]
	roots       work.Memo[string, *verify.Trust]
	provenances work.Memo[string, *verify.Signer]
	valueFiles  work.Memo[string, []byte] // by URL
	trust       func() *verify.Trust
	reading     func() http.RoundTripper // to servers that get no credentials

	downloads store.Scratch // for the files of blobs and indexes
	files     closers       // of indexes
}

func (c *Connections) newFile() (*blob.File, error) {
	dir, err := c.downloads.Dir()
	if err != nil {
		return nil, err
	}
	return blob.Create(dir)
}

// reconciliation is the reconciliation of one object from spec to status. The Reconciler creates
// one for each object of a run. Only the goroutine that created it uses it, except for its
// warnings while dependencies are fetched. It ends with the object's Result.
type reconciliation struct {
	r *Reconciler
	subject
	memory
	// locked is the entry of a lock that determines the version; asked is the entry whose version is requested from the source and
	// compared with its answer. Each is nil without such an entry; wanted holds the requirements of the object.
	locked, asked *lock.Entry
	wanted        lock.Wanted

	steps    objectSteps
	status   commonStatus // of the object, not complete before the end
	out      status.Outcome
	result   *Result
	*remarks // of the result
}

// choosing reports whether the run stores nothing.
func (p *reconciliation) choosing() bool { return p.r.o.Until == Choose }

// subject is the object of a reconciliation. It does not change, except for the status of
// typed.
type subject struct {
	kind  *kind
	adm   *admission.Admitted
	key   store.Key
	typed any // a copy whose status this run works on
}

// memory is the state of an object that earlier runs recorded, and that this run will
// record. It is read when the object is locked, and corrected by the state of the storage.
type memory struct {
	prev        status.Previous
	remembered  *store.Record       // nil without a record
	fingerprint string              // of the artifact that is in storage
	tag         helmrepo.Tag        // at its source, "" if unknown
	chart       store.ReleasedChart // of a release; its fingerprint is that of the artifact
	rebuild     bool                // a new requestedAt, or --refresh: reuse nothing
}

// reusable reports whether the stored artifact is the one that this run would build.
func (m *memory) reusable(fingerprint string) bool {
	return !m.rebuild && m.stored() != nil && m.fingerprint == fingerprint
}

// stored returns the artifact of earlier runs that is still in storage, or nil.
func (m *memory) stored() *meta.Artifact {
	if m.prev.Disappeared {
		return nil
	}
	return m.prev.Artifact
}
