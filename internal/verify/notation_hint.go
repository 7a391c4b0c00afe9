package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// hint returns advice about a refused signature, "" if the reason is unknown.
func (n *notary) hint(outcome *notation.VerificationOutcome, subject ocispec.Descriptor) string {
	if outcome == nil || outcome.EnvelopeContent == nil || len(outcome.EnvelopeContent.SignerInfo.CertificateChain) == 0 {
		return ""
	}
	chain := outcome.EnvelopeContent.SignerInfo.CertificateChain
	leaf, last := chain[0], chain[len(chain)-1]
	for _, result := range outcome.VerificationResults {
		if result.Error == nil || result.Action != trustpolicy.ActionEnforce {
			continue
		}
		switch result.Type {
		case trustpolicy.TypeAuthenticity:
			return fmt.Sprintf("it was made by %q with a certificate of %q: the Secret needs a certificate of that chain, and %s the name in trustedIdentities",
				leaf.Subject, last.Subject, PolicyName)
		case trustpolicy.TypeAuthenticTimestamp:
			return fmt.Sprintf("the certificate of %q is valid from %s to %s", leaf.Subject,
				leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	var payload struct{ TargetArtifact ocispec.Descriptor }
	if json.Unmarshal(outcome.EnvelopeContent.Payload.Content, &payload) == nil && payload.TargetArtifact.Digest != subject.Digest {
		return copiedHint
	}
	return ""
}

func sortedNames(m map[string][]byte) []string { return slices.Sorted(maps.Keys(m)) }
