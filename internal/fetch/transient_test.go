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
	"os"
	"syscall"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func TestTransient(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	request := func(err error) error { return NewRequestError(t.Context(), "https://h.test/", err) }
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
		{"named deadline", NewTimeout("spec.timeout", 1), true, false},
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
