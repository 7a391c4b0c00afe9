package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// indexed is a Helm repository with an index, on a server or in a directory.
type indexed interface {
	// Index writes the index to dst unless it still has the tag known. It returns the positions of the charts in it, and its tag.
	Index(ctx context.Context, dst fetch.Sink, limit int64, known helmrepo.Tag) (*index.Offsets, helmrepo.Tag, error)
	// Archive writes the archive of a candidate of that index to dst.
	Archive(ctx context.Context, c resolve.Candidate, dst fetch.Sink, limit int64) error
	// Provenance writes the provenance file of the archive to dst.
	Provenance(ctx context.Context, c resolve.Candidate, dst fetch.Sink) error
}

// repository is an opened HelmRepository with its location and credentials. Reconciler.open creates
// one per object and run. It does not change after that, and its connections end with the run.
type repository struct {
	object   *admission.Admitted
	indexed  indexed        // nil for a registry
	registry *oci.Namespace // nil without a registry
	tls      *auth.Identity
	basic    auth.Logins // user name and password of an HTTP repository, or nil
	// identity is equal, within one run, for two repositories with the same answers and the same timeout. It
	// contains no secret, but must not be stored: it has no meaning in another run.
	identity string
	// location is the redacted location of the repository, for fingerprints.
	location string
	scope    cache.Scope // of the repository in the cache
	withheld error       // the login of the environment that is withheld, or nil
	remarks
}

// fingerprint is equal for indexes that were stored from the same location.
func (repo *repository) fingerprint() string {
	sum := sha256.Sum256([]byte(repo.location))
	return hex.EncodeToString(sum[:])
}

// indexFile is an index on disk and the positions from the one scan of it. It stays open for the
// rest of the run: each chart of the repository reads its part. It does not change.
type indexFile struct {
	offsets *index.Offsets
	digest  digest.Digest // of the bytes
	tag     helmrepo.Tag
	file    io.ReaderAt
	size    int64
	cached  bool // file is in the cache: a copy must be compared with the digest
}

func (f *indexFile) open() *index.Index { return index.Open(f.file, f.offsets) }

func sectionOf(r io.ReaderAt, size int64) *io.SectionReader { return io.NewSectionReader(r, 0, size) }

// warnWithheldBy reports the withheld login of a registry with the chart: a registry has no status.
func (w *remarks) warnWithheldBy(repo *repository) {
	if repo.withheld != nil {
		w.Warnings = append(w.Warnings, Warning{Code: finding.WithheldLogin, Text: repo.withheld.Error(), Err: repo.withheld})
	}
}
