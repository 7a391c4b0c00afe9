package oci

import (
	"net/http"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
)

// Requests of other packages to a registry are retried, and a definite answer is passed on unchanged.
func TestReading(t *testing.T) {
	transports := map[string]func(*Namespace) http.RoundTripper{
		"registry": func(o *Namespace) http.RoundTripper { return o.Reading() },
		"others":   func(o *Namespace) http.RoundTripper { return o.client.Reading() },
	}
	for _, tt := range []struct {
		name          string
		h             func() http.Handler
		want, wantErr string
		code          int
		transient     bool
	}{
		{"good", func() http.Handler { return fetchtest.Files{"/v2/x": "signature"} }, "signature", "", 200, false},
		{"again", func() http.Handler {
			return fetchtest.InTurn(fetchtest.Status(503), http.HandlerFunc(fetchtest.Short), fetchtest.Files{"/v2/x": "signature"})
		}, "signature", "", 200, false},
		{"503", func() http.Handler { return fetchtest.Status(503) }, "", "503 Service Unavailable", 0, true},
		{"cut short", func() http.Handler { return http.HandlerFunc(fetchtest.Short) }, "", "unexpected EOF", 0, true},
		{"404", func() http.Handler { return fetchtest.Status(404) }, "", "", 404, false},
		{"400", func() http.Handler { return fetchtest.Status(400) }, "", "", 400, false},
		{"403", func() http.Handler { return fetchtest.Status(403) }, "", "", 403, false},
		{"bounded", func() http.Handler { return fetchtest.Files{"/v2/x": strings.Repeat("x", maxMetadataBytes+100)} }, strings.Repeat("x", maxMetadataBytes+1), "", 200, false},
	} {
		for name, transport := range transports {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				w := fetchtest.NewWorld(t)
				w.Serve(t, "registry.test:80", tt.h())
				o, err := NewClient(w.Client(t)).Namespace("oci://registry.test/charts", Options{Insecure: true})
				if err != nil {
					t.Fatal(err)
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://registry.test/v2/x", nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport(o).RoundTrip(req)
				if tt.wantErr != "" {
					fetchtest.WantError(t, err, tt.wantErr)
					if fetch.Transient(err) != tt.transient {
						t.Errorf("transient: %v", !tt.transient)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				var dst fetchtest.Buffer
				if _, err := dst.ReadFrom(answer.Body); err != nil {
					t.Fatal(err)
				}
				if answer.StatusCode != tt.code || answer.StatusCode == 200 && dst.String() != tt.want {
					t.Errorf("got %d, %.40q", answer.StatusCode, &dst)
				}
			})
		}
	}
}
