package reconcile

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// TestCodeOf wraps each error as a run does: its code must not depend on the surrounding text.
func TestCodeOf(t *testing.T) {
	missing := &manifest.NotFoundError{Kind: "Secret", Name: "x"}
	answer := func(code int) error { return &fetch.StatusError{Code: code} }
	tests := []struct {
		name string
		err  error
		want finding.Code
	}{
		{"401", status.ChartPullError.Wrap(answer(http.StatusUnauthorized)), finding.Authentication},
		{"403", status.Unknown.Wrap(answer(http.StatusForbidden)), finding.Authentication},
		{"404", status.ChartPullError.Wrap(answer(http.StatusNotFound)), finding.NotFound},
		{"410", status.Failed.Wrap(answer(http.StatusGone)), finding.NotFound},
		{"429", status.Failed.Wrap(answer(http.StatusTooManyRequests)), finding.ServerError},
		{"503", status.Failed.Wrap(answer(http.StatusServiceUnavailable)), finding.ServerError},
		{"418", status.Failed.Wrap(answer(http.StatusTeapot)), finding.RefusedRequest},
		{"no such host", status.Failed.Wrap(&net.DNSError{Name: "x"}), finding.Unreachable},
		{"a limit of time", status.Failed.Wrap(fetch.NewTimeout("spec.timeout", 1)), finding.TimedOut},
		{"a limit of size", status.ChartPullError.Wrap(fetch.NewSizeError("x")), finding.TooLarge},
		{"a missing Secret", status.AuthenticationFailed.Wrap(missing), finding.MissingSecret},
		{"an incomplete login", status.AuthenticationFailed.Wrap(finding.WithCode(finding.IncompleteLogin, errors.New("x"))), finding.IncompleteLogin},
		{"no match", status.InvalidChartReference.Wrap(&resolve.NoMatchError{}), finding.NoMatch},
		{"no constraint", status.InvalidChartReference.Wrap(resolve.ValidateVersion("latest")), finding.MalformedVersion},
		{"no name", status.InvalidChartReference.Wrap(resolve.ValidateName("X")), finding.InvalidChartName},
		{"of a dependency", status.DependencyBuildError.Wrap(&resolve.NoMatchError{}), finding.Dependencies},
		{"bytes of a dependency", status.DependencyBuildError.Wrap(&fetch.DigestError{Err: errors.New("x")}), finding.DigestMismatch},
		{"of the source", status.NoSource("HelmRepository", "x", answer(http.StatusNotFound)), finding.SourceNotReady},
		{"altered", status.ReadOperationFailed.Wrap(alteredArtifact("x", fs.ErrNotExist)), finding.ArtifactAltered},
		{"unsigned", status.ChartVerificationError.Wrap(notSigned("x")), finding.Unsigned},
		{"refused", status.ChartVerificationError.Wrap(&verify.RefusedError{Problem: finding.Problem{Class: finding.Untrusted, Text: "x"}}), finding.SignatureFailed},
		{"no keys", status.ChartVerificationError.Wrap(unverifiable("x", missing)), finding.Unverifiable},
		{"a Git signature", verificationFailure(&git.VerificationError{Problem: finding.Problem{Code: finding.GitUnsigned}}), finding.GitUnsigned},
		{"a full disk", status.ArchiveOperationFailed.Wrap(fs.ErrInvalid), finding.Storage},
		{"something else", errors.New("404 Not Found: x509: unsigned"), finding.Unexpected},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := CodeOf(tt.err); got != tt.want {
				t.Errorf("CodeOf = %s, want %s", got, tt.want)
			}
			if got := CodeOf(fmt.Errorf("401 unsigned: %w", tt.err)); got != tt.want {
				t.Errorf("in other words: %s, want %s", got, tt.want)
			}
		})
	}
}
