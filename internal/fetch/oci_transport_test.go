package fetch

import (
	"net/http"
	"strings"
	"testing"
)

// What others read from a registry is tried again, and given to them as it is where that is an answer.
func TestReading(t *testing.T) {
	transports := map[string]func(*OCI) http.RoundTripper{
		"registry": func(o *OCI) http.RoundTripper { return o.Reading() },
		"others":   func(o *OCI) http.RoundTripper { return o.client.Reading() },
	}
	for _, tt := range []struct {
		name          string
		h             func() http.Handler
		want, wantErr string
		code          int
		transient     bool
	}{
		{"good", func() http.Handler { return files{"/v2/x": "signature"} }, "signature", "", 200, false},
		{"again", func() http.Handler {
			return inTurn(status(503), http.HandlerFunc(short), files{"/v2/x": "signature"})
		}, "signature", "", 200, false},
		{"503", func() http.Handler { return status(503) }, "", "503 Service Unavailable", 0, true},
		{"cut short", func() http.Handler { return http.HandlerFunc(short) }, "", "unexpected EOF", 0, true},
		{"404", func() http.Handler { return status(404) }, "", "", 404, false},
		{"400", func() http.Handler { return status(400) }, "", "", 400, false},
		{"403", func() http.Handler { return status(403) }, "", "", 403, false},
		{"bounded", func() http.Handler { return files{"/v2/x": strings.Repeat("x", maxMetadataBytes+100)} }, strings.Repeat("x", maxMetadataBytes+1), "", 200, false},
	} {
		for name, transport := range transports {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				w := newWorld(t)
				w.serve(t, "registry.test:80", tt.h())
				o, err := w.client(t).OCI("oci://registry.test/charts", OCIOptions{Insecure: true})
				if err != nil {
					t.Fatal(err)
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://registry.test/v2/x", nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := transport(o).RoundTrip(req)
				if tt.wantErr != "" {
					wantError(t, err, tt.wantErr)
					if Transient(err) != tt.transient {
						t.Errorf("transient: %v", !tt.transient)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer answer.Body.Close()
				var dst buffer
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
