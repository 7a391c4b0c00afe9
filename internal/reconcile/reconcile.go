// Package reconcile reconciles each object from its spec to its status, once.
// It alone determines the order of the steps and attaches reasons to errors. It
// does not print and does not read flags.
package reconcile

import (
	"context"
	"net/http"
	"time"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
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
	plain       work.Memo[schemeKey, bool]
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

// finished returns the result of an object. If the run ended while another goroutine was
// reconciling it, it waits: that reconciliation ends too, and has the document.
func (r *Reconciler) finished(ctx context.Context, adm *admission.Admitted) *Result {
	result := r.result(ctx, adm)
	if result.State == Interrupted && result.Failure == nil {
		result = r.result(context.WithoutCancel(ctx), adm)
	}
	return result
}

// result reconciles an object, or waits for the goroutine that does so.
func (r *Reconciler) result(ctx context.Context, adm *admission.Admitted) *Result {
	result, err := r.results.Do(ctx, keyOf(adm), func() (*Result, error) {
		r.progress.Started(adm)
		result := r.finishedBefore(adm)
		if result == nil {
			result = r.reconcile(ctx, adm)
		}
		r.progress.Finished(result)
		return result, nil
	})
	if err != nil { // ctx ended while another goroutine reconciled it
		return &Result{Object: adm, State: Interrupted}
	}
	return result
}
