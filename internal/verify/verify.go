// Package verify verifies that a chart is signed by someone who is trusted. It does not choose the chart: the caller
// names a digest, and this package never resolves a tag.
package verify

import (
	"net/http"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// A Subject is the manifest in a registry that has to be signed. The caller makes it; nothing changes it.
type Subject struct {
	// Repository is "host/repository", without a tag or a digest.
	Repository string
	Digest     digest.Digest
	// Insecure allows plain HTTP.
	Insecure bool
	// Transport reaches the registry with the TLS settings, proxy and credentials of the pull. It may retry, follow
	// redirects, and return errors in place of answers: an error that matches fs.ErrNotExist is a 404, and a Transient
	// method of an error still decides whether it is transient.
	Transport http.RoundTripper
	// Timeout bounds one request, with its answer and the transport's retries. 0 is 5 minutes.
	Timeout time.Duration
	// Memory holds the registry's answers in earlier runs; may be nil.
	Memory *Memory
}

// Ref returns the reference for messages.
func (s Subject) Ref() string { return s.Repository + "@" + s.Digest.String() }

// The formats of signatures.
const (
	FormatClassic    = "cosign signature"
	FormatBundle     = "sigstore bundle"
	FormatNotation   = "notation signature"
	FormatProvenance = "helm provenance"
)

// A Signer holds the verified facts about a signer. A verification makes it; objects with equal verifications in a run
// share it, and it does not change.
type Signer struct {
	Format string
	// Key is the name of the public key of the signature, or the fingerprint of a PGP key.
	Key string
	// Identity and Issuer are the certificate's; of a PGP key, Identity is the user ID.
	Identity, Issuer string
	// LogIndex is the position of the signature in the transparency log, nil if it is not known.
	LogIndex *int64
	// Time is the time of the signature, from the log, a timestamp authority or else the signer. It may be zero.
	Time time.Time
	// Warnings are failed checks that the trust policy only records.
	Warnings []string
}

// Limits of input from outside. Registries refuse manifests above 4 MiB as well; signatures and bundles have a few KiB.
const (
	maxManifestBytes  = 4 << 20
	maxSignatureBytes = 1 << 20
	// maxSignatures is the number of signatures, or of bundles, that are tried for one digest.
	maxSignatures = 50
	// maxReferrers is the number of artifacts that may refer to a digest.
	maxReferrers = 500
)
