package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func TestTransient(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	request := func(err error) error { return &RequestError{Err: err} }
	for _, tt := range []struct {
		name            string
		err             error
		transient, auth bool
	}{
		{"nil", nil, false, false},
		{"plain", errors.New("timeout 503 connection refused"), false, false},
		{"refused", dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), true, false},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, true, false},
		{"broken pipe", &net.OpError{Op: "write", Err: syscall.EPIPE}, true, false},
		{"no such host", dial(&net.DNSError{Err: "no such host", IsNotFound: true}), true, false},
		{"no such host, bare", &net.DNSError{}, true, false},
		{"invalid address", dial(&net.AddrError{Err: "missing port"}), false, false},
		{"deadline", context.DeadlineExceeded, true, false},
		{"named deadline", &TimeoutError{}, true, false},
		{"canceled", context.Canceled, false, false},
		{"canceled while dialing", dial(context.Canceled), false, false},
		{"i/o timeout", os.ErrDeadlineExceeded, true, false},
		{"not found", fs.ErrNotExist, false, false},
		{"disk full", &fs.PathError{Op: "write", Err: syscall.ENOSPC}, false, false},
		{"file ends early", io.ErrUnexpectedEOF, false, false},
		{"answer ends early", request(io.ErrUnexpectedEOF), true, false},
		{"connection ends", request(io.EOF), true, false},
		{"stream reset", request(http2StreamError{Code: 2}), true, false},
		{"malformed answer", request(errors.New("malformed HTTP response")), false, false},
		{"tunnel 502", request(&auth.ProxyError{Code: 502}), true, false},
		{"tunnel 407", request(&auth.ProxyError{Code: 407}), false, false},
		{"x509", request(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), false, true},
		{"host name", request(x509.HostnameError{Certificate: &x509.Certificate{}}), false, true},
		{"expired", request(x509.CertificateInvalidError{}), false, true},
		{"alert from there", request(&net.OpError{Op: "remote error", Err: tls.AlertError(42)}), false, true},
		{"alert from here", request(&net.OpError{Op: "local error", Err: errors.New("tls: bad record MAC")}), false, true},
		{"no TLS", request(tls.RecordHeaderError{}), false, false},
		{"401", &StatusError{Code: 401}, false, true},
		{"403", fmt.Errorf("wrapped: %w", &StatusError{Code: 403}), false, true},
		{"404", &StatusError{Code: 404}, false, false},
		{"407", &StatusError{Code: 407}, false, false},
		{"503", fmt.Errorf("wrapped: %w", &StatusError{Code: 503}), true, false},
		{"digest", &DigestError{Err: &digest.MismatchError{}}, false, false},
		{"index", &IndexError{io.ErrUnexpectedEOF}, false, false},
		{"no match", &resolve.NoMatchError{}, false, false},
	} {
		if got := Transient(tt.err); got != tt.transient {
			t.Errorf("%s: transient %v", tt.name, got)
		}
		if got := AuthFailure(tt.err); got != tt.auth {
			t.Errorf("%s: authentication %v", tt.name, got)
		}
	}
}

func TestTLSFailures(t *testing.T) {
	w := newWorld(t)
	w.serveTLS(t, "repo.test:443", w.serverTLS(t, "repo.test", false), files{"/x": "archive"})
	w.serveTLS(t, "mutual.test:443", w.serverTLS(t, "mutual.test", true), files{"/x": "archive"})
	w.serveTLS(t, "wrong.test:443", w.serverTLS(t, "repo.test", false), files{"/x": "archive"})
	ca := func(ca *helmtest.CA) map[string][]byte { return map[string][]byte{"ca.crt": ca.Cert} }
	pair := func(p helmtest.Pair) map[string][]byte {
		return map[string][]byte{"ca.crt": w.kit.CA.Cert, "tls.crt": p.Cert, "tls.key": p.Key}
	}
	for _, tt := range []struct {
		name, url string
		cert      map[string][]byte
		err       string // empty: it works
	}{
		{"case 9: private CA", "https://repo.test", ca(w.kit.CA), ""},
		{"client certificate", "https://mutual.test", pair(w.kit.Client), ""},
		{"unknown authority", "https://repo.test", nil, "x509: certificate signed by unknown authority"},
		{"other authority", "https://repo.test", ca(w.kit.Other), "x509: certificate signed by unknown authority"},
		{"other host", "https://wrong.test", ca(w.kit.CA), "x509: certificate is valid for repo.test, not wrong.test"},
		{"no client certificate", "https://mutual.test", ca(w.kit.CA), "tls: certificate required"},
		{"client certificate of another authority", "https://mutual.test", pair(w.kit.OtherClient), "tls: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := get(t, w.repository(t, tt.url, identity(t, nil, tt.cert), HTTPOptions{}))
			if tt.err == "" {
				if err != nil || got != "archive" {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			wantError(t, err, tt.err)
			if Transient(err) || !AuthFailure(err) || len(w.waits) > 0 {
				t.Errorf("transient %v, auth %v, waits %v", Transient(err), AuthFailure(err), w.waits)
			}
		})
	}
}

func TestNoSuchHost(t *testing.T) {
	w := newWorld(t)
	_, err := get(t, w.repository(t, "http://nowhere.test", nil, HTTPOptions{}))
	wantError(t, err, "no such host")
	if !Transient(err) || len(w.waits) != 3 {
		t.Errorf("transient %v, waits %v", Transient(err), w.waits)
	}
}

// A stream that a server resets is the network's failure; net/http does not export the type that says so.
func TestHTTP2Reset(t *testing.T) {
	w := newWorld(t)
	config := w.serverTLS(t, "repo.test", false)
	config.NextProtos = []string{"h2"}
	w.serveTLS(t, "repo.test:443", config, inTurn(
		http.HandlerFunc(reset),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("beginning"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}),
		http.HandlerFunc(short),
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })))
	id := identity(t, nil, map[string][]byte{"ca.crt": w.kit.CA.Cert})
	got, err := get(t, w.repository(t, "https://repo.test", id, HTTPOptions{}))
	if err != nil || got != "HTTP/2.0" || len(w.waits) != 3 {
		t.Errorf("got %q, %v after %v", got, err, w.waits)
	}
}

func TestThroughProxy(t *testing.T) {
	w := newWorld(t)
	proxy := w.serve(t, "proxy.test:3128", helmtest.Proxy(w.Network, "px:canary-proxy"))
	w.serveTLS(t, "repo.test:443", w.serverTLS(t, "repo.test", false), files{"/x": "archive"})
	password := "canary-proxy"
	w.config.Getenv = func(key string) string {
		if key == "HTTPS_PROXY" {
			return "http://px:" + password + "@proxy.test:3128"
		}
		return ""
	}
	id := identity(t, nil, map[string][]byte{"ca.crt": w.kit.CA.Cert})
	if got, err := get(t, w.repository(t, "https://repo.test", id, HTTPOptions{})); err != nil || got != "archive" {
		t.Errorf("got %q, %v", got, err)
	}
	if len(proxy.Log.Drain()) != 1 {
		t.Error("went past the proxy")
	}
	password = "canary-wrong"
	_, err := get(t, w.repository(t, "https://repo.test", id, HTTPOptions{}))
	wantError(t, err, "the proxy answered 407")
	if Transient(err) || !strings.Contains(hintOf(err), "HTTPS_PROXY") {
		t.Errorf("transient %v, hint %q", Transient(err), hintOf(err))
	}
	password = "canary-proxy"
	_, err = get(t, w.repository(t, "https://nowhere.test", id, HTTPOptions{}))
	wantError(t, err, "the proxy answered 502")
	if !Transient(err) {
		t.Error("a bad gateway is not transient")
	}
}
