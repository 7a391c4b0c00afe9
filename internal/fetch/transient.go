package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Transient reports whether a later attempt may succeed without any change. Errors with a Transient method decide;
// otherwise network failures are transient: refused and reset connections, timeouts, failed name resolution.
func Transient(err error) bool {
	var e interface{ Transient() bool }
	if errors.As(err, &e) {
		return e.Transient()
	}
	return networkFailure(err)
}

// AuthFailure reports whether credentials or certificates are the reason: 401, 403, a TLS alert, a certificate that
// one side does not accept.
func AuthFailure(err error) bool {
	var e interface{ AuthFailure() bool }
	if errors.As(err, &e) && e.AuthFailure() {
		return true
	}
	return CertificateFailure(err) || TLSAlert(err)
}

// CodeOf returns the code of an error of the standard library about the network, a certificate or a deadline: this
// module has no error types for these. It is "" for anything else.
func CodeOf(err error) finding.Code { return networkCode(err, Transient(err)) }

// networkCode is CodeOf of an error of which it is known whether asking again may help.
func networkCode(err error, transient bool) finding.Code {
	switch code := TLSCode(err); {
	case code != "":
		return code
	case errors.Is(err, context.DeadlineExceeded):
		return finding.TimedOut
	case transient:
		return finding.Unreachable
	}
	return ""
}

// TLSCode returns the code of a failed exchange of certificates, "" for other errors.
func TLSCode(err error) finding.Code {
	if CertificateFailure(err) || TLSAlert(err) {
		return finding.Certificate
	}
	return ""
}

func networkFailure(err error) bool {
	if errors.Is(err, context.Canceled) || CertificateFailure(err) || TLSAlert(err) {
		return false
	}
	var (
		proxy   *auth.ProxyError
		dns     *net.DNSError
		addr    *net.AddrError
		op      *net.OpError
		timeout net.Error
	)
	switch {
	case errors.As(err, &proxy):
		return finding.TransientStatus(proxy.Code)
	case errors.As(err, &dns):
		return true
	case errors.As(err, &addr):
		return false
	case errors.As(err, &op):
		return true
	case errors.As(err, &timeout) && timeout.Timeout():
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// TransientRequest is Transient for errors that come from a request: a connection that just ends is a network failure
// there, while io.EOF from a file means that the file is broken.
func TransientRequest(err error) bool {
	return Transient(err) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || resetStream(err)
}

// resetStream recognises net/http's HTTP/2 stream error, which is not exported but copies itself into any struct of
// its shape.
func resetStream(err error) bool {
	var e http2StreamError
	return errors.As(err, &e)
}

type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e http2StreamError) Error() string { return "stream error" }

// CertificateFailure reports whether the server's certificate was refused.
func CertificateFailure(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		roots        x509.SystemRootsError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &roots)
}

// TLSAlert reports whether one side ended the handshake or the connection with an alert. Package tls has no exported
// type for it; it is recognized by the name of the operation, which is part of net.OpError's documented fields.
func TLSAlert(err error) bool {
	var op *net.OpError
	var alert tls.AlertError
	return errors.As(err, &alert) || errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}
