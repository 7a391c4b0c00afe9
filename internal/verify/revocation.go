package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/notaryproject/notation-core-go/revocation"
	"github.com/notaryproject/notation-core-go/revocation/crl"
	"github.com/notaryproject/notation-core-go/revocation/purpose"
	"github.com/notaryproject/notation-core-go/revocation/result"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
)

// revocationTimeout bounds a request to one revocation server. The library bounds the size of the answer.
const revocationTimeout = 5 * time.Second

var errNoRevocation = errors.New("revocation servers are not contacted")

// revocations sends, for the library, the requests to revocation servers, and records the facts that the library only
// puts into words: whether a certificate was revoked, or a server could not be reached.
type revocations struct {
	next http.RoundTripper

	mu      sync.Mutex
	failure error
	revoked bool
}

func (r *revocations) options() (verifier.VerifierOptions, error) {
	client := &http.Client{Timeout: revocationTimeout, Transport: r}
	fetcher, err := crl.NewHTTPFetcher(client)
	if err != nil {
		return verifier.VerifierOptions{}, err
	}
	o := revocation.Options{OCSPHTTPClient: client, CRLFetcher: fetcher, CertChainPurpose: purpose.CodeSigning}
	code, err := revocation.NewWithOptions(o)
	if err != nil {
		return verifier.VerifierOptions{}, err
	}
	o.CertChainPurpose = purpose.Timestamping
	stamps, err := revocation.NewWithOptions(o)
	return verifier.VerifierOptions{
		RevocationCodeSigningValidator:  &recordingValidator{r, code},
		RevocationTimestampingValidator: &recordingValidator{r, stamps},
	}, err
}

// RoundTrip implements http.RoundTripper.
func (r *revocations) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.next == nil {
		return nil, errNoRevocation
	}
	resp, err := r.next.RoundTrip(req)
	failure := err
	if err == nil && resp.StatusCode != http.StatusOK {
		failure = badAnswer(req.URL, resp.StatusCode)
	}
	if failure != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failure = failure
	}
	return resp, err
}

type recordingValidator struct {
	record *revocations
	next   revocation.Validator
}

// ValidateContext implements the library's interface.
func (v *recordingValidator) ValidateContext(ctx context.Context, o revocation.ValidateContextOptions) ([]*result.CertRevocationResult, error) {
	results, err := v.next.ValidateContext(ctx, o)
	v.record.mu.Lock()
	defer v.record.mu.Unlock()
	for _, r := range results {
		v.record.revoked = v.record.revoked || r.Result == result.ResultRevoked
	}
	return results, err
}

// undecided returns the failure of a request to a revocation server, if it is the reason for a refusal: no certificate was
// revoked, and the policy enforces the check.
func (r *revocations) undecided(outcome *notation.VerificationOutcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if outcome == nil || r.revoked || r.failure == nil {
		return nil
	}
	for _, v := range outcome.VerificationResults {
		if v.Type == trustpolicy.TypeRevocation && v.Action == trustpolicy.ActionEnforce && v.Error != nil {
			return fmt.Errorf("revocation status is unknown: %w", r.failure)
		}
	}
	return nil
}
