package auth

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// Whatever happens first, the alert, the reset or the failed write: the answer is the alert.
func TestRefusedCertificateIsAlwaysAnAlert(t *testing.T) {
	w := newWorld(t)
	for proto, addr := range map[string]string{"h2": "repo.test:443", "http/1.1": "repo.test:8443"} {
		config, err := w.kit.CA.ServerConfig("repo.test", true)
		if err != nil {
			t.Fatal(err)
		}
		config.NextProtos = []string{proto}
		s, err := helmtest.Serve(w.Network, addr, config, ok)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		id := newIdentity(secrets{ca: w.kit.CA.Cert})
		for range 30 {
			_, err := get(t, w.transport(t, TransportOptions{Identity: id, Base: mustParse(t, s.URL)}), t.Context(), s.URL, nil)
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "remote error" || !strings.Contains(err.Error(), "tls: ") {
				t.Fatalf("%s: got %v", proto, err)
			}
		}
	}
}
