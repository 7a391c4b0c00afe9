package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// The keys of artifact.metadata for a chart whose signature was verified.
const (
	metadataSignedBy = "helmsrc.dev/signed-by" // name of the key, or identity of the certificate
	metadataIssuer   = "helmsrc.dev/signer-issuer"
	metadataLogIndex = "helmsrc.dev/signature-log-index"
	metadataSignedAt = "helmsrc.dev/signed-at"
)

// Signature is who signed a chart, as far as that was verified.
type Signature = verify.Signer

// verifyChart checks the signature of a chart, where one is asked for. It runs on
// every run, also when the artifact is reused: who was trusted yesterday may not
// be today.
func (p *pass) verifyChart(ctx context.Context, obj *sourcev1.HelmChart, chosen *pick) (verified bool, err error) {
	if obj.Spec.Verify == nil || p.r.o.ResolveOnly && !p.r.o.Verify {
		return false, nil
	}
	if chosen.subject == nil {
		return false, status.ChartVerificationError.Wrap(&unverifiableError{})
	}
	check, err := p.verifier(ctx, obj)
	if err != nil {
		return false, setupFailure(obj, err)
	}
	key := signatureKey{chosen.id, check.against}
	signer, err := p.r.signers.do(ctx, key, func() (*verify.Signer, error) { return check.run(ctx, *chosen.subject) })
	var settings *verify.SettingsError
	switch {
	case errors.As(err, &settings):
		return false, setupFailure(obj, err)
	case err != nil:
		return false, signatureFailure(chosen, err)
	case signer == nil:
		p.warnf("the signature of %s was not verified: the trust policy does not ask for it", chosen.url)
		return false, nil
	}
	for _, w := range signer.Warnings {
		p.warnf("%s", w)
	}
	chosen.metadata = withSigner(chosen.metadata, signer)
	p.result.Signature = signer
	return true, nil
}

// signatureFailure is a signature that is missing, refused, or cannot be had.
func signatureFailure(chosen *pick, err error) error {
	return status.ChartVerificationError.Wrap(fmt.Errorf("failed to verify %s: %w", chosen.url, err))
}

// setupError is a chart that cannot be verified with what was given.
type setupError struct {
	provider string
	err      error
}

func (e *setupError) Error() string {
	return fmt.Sprintf("failed to verify the signature using provider '%s': %v", e.provider, e.err)
}

func (e *setupError) Unwrap() error { return e.err }

// Integrity tells that the chart cannot be trusted.
func (e *setupError) Integrity() bool { return true }

// unverifiableError is a chart that is to be verified, but cannot be. Its text is
// source-controller's for charts from HTTP repositories.
type unverifiableError struct{}

func (*unverifiableError) Error() string { return "not implemented" }

// Integrity tells that the chart cannot be trusted.
func (*unverifiableError) Integrity() bool { return true }

// Hint tells what can be verified.
func (*unverifiableError) Hint() string {
	return "spec.verify works only with charts from OCI registries"
}

// withSigner adds who signed to the metadata of an artifact.
func withSigner(metadata map[string]string, s *verify.Signer) map[string]string {
	metadata = maps.Clone(metadata)
	metadata[metadataSignedBy] = s.Key
	if s.Identity != "" {
		metadata[metadataSignedBy] = s.Identity
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
