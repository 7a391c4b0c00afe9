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

// Providers of signatures, as spec.verify names them.
const (
	providerCosign   = "cosign"
	providerNotation = "notation"
)

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
	check, err := p.verifier(obj)
	if err != nil {
		return false, setupFailure(obj, err)
	}
	key := signatureKey{chosen.subject.Ref(), check.against}
	signer, err := p.r.signers.do(ctx, key, func() (*verify.Signer, error) { return check.run(ctx, *chosen.subject) })
	var settings *verify.SettingsError
	switch {
	case errors.As(err, &settings):
		return false, setupFailure(obj, err)
	case err != nil:
		return false, status.ChartVerificationError.Wrap(fmt.Errorf("failed to verify %s: %w", chosen.url, err))
	case signer == nil: // the policy says that it does not matter
		return false, nil
	}
	chosen.metadata = withSigner(chosen.metadata, signer)
	p.result.Signature = signer
	return true, nil
}

// setupFailure is a verification that cannot even begin.
func setupFailure(obj *sourcev1.HelmChart, err error) error {
	provider := obj.Spec.Verify.Provider
	if provider == providerCosign && obj.Spec.Verify.SecretRef == nil {
		provider += " keyless"
	}
	return status.VerificationError.Wrap(&setupError{provider, err})
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

// signatureKey names what is verified, and against what: the same question is
// asked once per run.
type signatureKey struct{ subject, against string }

// verifier is what a chart's signature is verified with.
type verifier struct {
	against string // equal for two verifiers that give the same answers
	run     func(context.Context, verify.Subject) (*verify.Signer, error)
}

// verifier reads what spec.verify refers to.
func (p *pass) verifier(obj *sourcev1.HelmChart) (*verifier, error) {
	spec, namespace := obj.Spec.Verify, p.adm.Object.Namespace
	against, err := fingerprintOf(namespace, spec)
	if err != nil {
		return nil, err
	}
	if spec.Provider != providerCosign {
		return nil, fmt.Errorf("provider %s is not supported yet", spec.Provider)
	}
	if spec.SecretRef == nil {
		return nil, errors.New("keyless verification is not supported yet")
	}
	secret, err := p.r.inventory.Secret(namespace, spec.SecretRef.Name)
	if err != nil {
		return nil, err
	}
	keys, err := verify.CosignKeys(secret.Namespace+"/"+secret.Name, secret.Data)
	if err != nil {
		return nil, err
	}
	return &verifier{against, func(ctx context.Context, s verify.Subject) (*verify.Signer, error) {
		return verify.Cosign(ctx, s, verify.CosignOptions{Keys: keys})
	}}, nil
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
