package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// The keys of artifact.metadata for a chart whose signature was verified.
const (
	metadataSignedBy  = "helmsrc.dev/signed-by"  // name of the key, or identity of the certificate
	metadataSignerKey = "helmsrc.dev/signer-key" // fingerprint, where signed-by is a name in a PGP key
	metadataIssuer    = "helmsrc.dev/signer-issuer"
	metadataLogIndex  = "helmsrc.dev/signature-log-index"
	metadataSignedAt  = "helmsrc.dev/signed-at"
)

// Signature is who signed a chart, as far as that was verified.
type Signature = verify.Signer

// verifyChart makes sure that a trusted identity signed the chart, where that
// is asked for. It runs on every run, also when the artifact is reused: who was
// trusted yesterday may not be today.
func (p *chartReconciliation) verifyChart(ctx context.Context, obj *sourcev1.HelmChart, chosen *resolvedChart) (verified bool, err error) {
	signer, err := p.verified(checks{
		asked:      obj.Spec.Verify != nil,
		signature:  func() (*verify.Signer, error) { return p.verifySignature(ctx, obj, chosen) },
		provenance: func() (*verify.Signer, error) { return p.verifyProvenance(ctx, chosen) },
		refused:    status.ChartVerificationError.Wrap,
	})
	if err != nil || signer == nil {
		return false, err
	}
	chosen.metadata = withSigner(chosen.metadata, signer)
	return true, nil
}

// checks are the ways to verify what an object asks for.
type checks struct {
	asked      bool                           // for by its spec.verify
	signature  func() (*verify.Signer, error) // what spec.verify asks for
	provenance func() (*verify.Signer, error) // what --keyring asks for
	refused    func(error) error              // attaches the reason to what nothing vouches for
}

// verified returns who signed what an object asks for, nil if nothing had to be verified. It reports the signer.
func (p *reconciliation) verified(c checks) (signer *verify.Signer, err error) {
	o := &p.r.o
	switch {
	case !o.checksSignatures():
		return nil, nil
	case c.asked:
		signer, err = c.signature()
	case o.Keyring != nil:
		signer, err = c.provenance()
	}
	switch {
	case err != nil:
		return nil, err
	case signer == nil && o.RequireVerification && !c.asked:
		return nil, c.refused(&unaskedError{"it has no spec.verify"})
	case signer == nil:
		return nil, nil
	}
	p.warnEach(finding.NotVerified, signer.Warnings)
	p.result.Signature = signer
	return signer, nil
}

// verifySignature checks what spec.verify asks for.
func (p *chartReconciliation) verifySignature(ctx context.Context, obj *sourcev1.HelmChart, chosen *resolvedChart) (*verify.Signer, error) {
	if chosen.subject == nil {
		return nil, status.ChartVerificationError.Wrap(&unverifiableError{
			text: "not implemented", // as source-controller says of charts from HTTP repositories
			hint: "spec.verify works only with charts from OCI registries; --keyring checks the provenance files of other charts",
		})
	}
	spec := chartVerification(obj)
	check, err := p.verifier(ctx, spec)
	if err != nil {
		return nil, setupFailure(spec, err)
	}
	key := signatureKey{chosen.id, check.against}
	signer, err := p.r.signers.Do(ctx, key, func() (*verify.Signer, error) { return check.run(ctx, *chosen.subject) })
	var settings *verify.SettingsError
	switch {
	case errors.As(err, &settings):
		return nil, setupFailure(spec, err)
	case err != nil:
		return nil, signatureFailure(chosen, err)
	case signer == nil && p.r.o.RequireVerification:
		return nil, signatureFailure(chosen, &unaskedError{"the trust policy enforces nothing"})
	case signer == nil:
		p.warnAs(finding.NotVerified, "the signature of %s was not verified: the trust policy does not enforce it", chosen.URL)
	}
	return signer, nil
}

// signatureFailure is a signature that is missing, refused, or not available.
func signatureFailure(chosen *resolvedChart, err error) error {
	return status.ChartVerificationError.Wrap(fmt.Errorf("failed to verify %s: %w", chosen.URL, err))
}

// unverifiableError is something that is to be verified, but cannot be with what there is. That is no reason to trust it.
type unverifiableError struct {
	text string
	hint string
	err  error // nil if the text says everything
}

func (e *unverifiableError) Error() string { return e.text }

// Finding is what is wrong.
func (*unverifiableError) Finding() finding.Code { return finding.Unverifiable }

func (e *unverifiableError) Unwrap() error { return e.err }

// Integrity reports that it cannot be trusted.
func (*unverifiableError) Integrity() bool { return true }

// Hint says what can be verified, or is empty.
func (e *unverifiableError) Hint() string { return e.hint }

// errDirectoryUnsigned is a signature that is asked of a local directory.
func errDirectoryUnsigned() error {
	return &unverifiableError{text: "a local directory has no signatures that could be verified"}
}

// resigned is a stored artifact with the signer of this run: who vouched for it
// when it was stored may no longer be required.
func (p *reconciliation) resigned(artifact *meta.Artifact) *meta.Artifact {
	if !p.r.o.checksSignatures() {
		return artifact
	}
	artifact = artifact.DeepCopy()
	for _, key := range []string{metadataSignedBy, metadataSignerKey, metadataIssuer, metadataLogIndex, metadataSignedAt} {
		delete(artifact.Metadata, key)
	}
	if s := p.result.Signature; s != nil {
		artifact.Metadata = withSigner(artifact.Metadata, s)
	}
	return artifact
}

// withSigner adds who signed to the metadata of an artifact.
func withSigner(metadata map[string]string, s *verify.Signer) map[string]string {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[metadataSignedBy] = s.Key
	if s.Identity != "" {
		metadata[metadataSignedBy] = s.Identity
	}
	if s.Identity != "" && s.Key != "" {
		metadata[metadataSignerKey] = s.Key
	}
	if s.Issuer != "" {
		metadata[metadataIssuer] = s.Issuer
	}
	if s.LogIndex != nil {
		metadata[metadataLogIndex] = strconv.FormatInt(*s.LogIndex, 10)
	}
	if !s.Time.IsZero() {
		metadata[metadataSignedAt] = s.Time.UTC().Format(time.RFC3339)
	}
	return metadata
}
