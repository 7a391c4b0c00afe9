package auth

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A request is reported once, when its body is closed, with the number of bytes read; a failed request at once.
func TestReported(t *testing.T) {
	var reports []Request
	begun := 0
	ctx := WithRequests(t.Context(), func() func(Request) {
		begun++
		return func(r Request) { reports = append(reports, r) }
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://user:canary@charts.test/index.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := reported(r, func() (*http.Response, error) {
		return &http.Response{StatusCode: 206, Body: io.NopCloser(strings.NewReader("twelve bytes"))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if begun != 1 || len(reports) != 0 {
		t.Fatalf("before the body is closed: %d begun, reported %v", begun, reports)
	}
	if _, err := io.ReadFull(answer.Body, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(reports) != 1 {
		t.Fatalf("reported %d times, want once: %v", len(reports), reports)
	}
	if got := reports[0]; got.Method != http.MethodGet || got.Status != 206 || got.Bytes != 6 || strings.Contains(got.URL, "canary") {
		t.Errorf("reported as %+v", got)
	}

	refused := errors.New("refused")
	_, err = reported(r, func() (*http.Response, error) { return nil, refused }) //nolint:bodyclose // there is no response
	if !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of the request", err)
	}
	if len(reports) != 2 || reports[1].Status != 0 {
		t.Errorf("a request that failed: %v", reports)
	}
}

// A registry that cannot be reached is an error, and does not count as an internal one.
func TestRegistryDial(t *testing.T) {
	refused := errors.New("refused")
	guard := &realmGuard{registry: &url.URL{Scheme: "https", Host: "127.0.0.1"}}
	dial := guard.registryDial(func(context.Context, string, string) (net.Conn, error) { return nil, refused })
	if _, err := dial(t.Context(), "tcp", "127.0.0.1:443"); !errors.Is(err, refused) {
		t.Errorf("got %v, want the error of the dialer", err)
	}
	if guard.inside.Load() {
		t.Error("a registry that was not reached counts as inside")
	}
}
