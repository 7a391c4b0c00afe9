package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// CertificateHint returns advice about a certificate that no authority can make valid, "" for other errors. It names
// the certificate and its period of validity.
func CertificateHint(err error) string {
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return fmt.Sprintf("the certificate of %s is valid from %s until %s: its owner must renew it, unless the clock of this machine is wrong",
			certificateNames(invalid.Cert), day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &host) && host.Certificate != nil:
		return fmt.Sprintf("the server at %s has a certificate for %s, valid until %s: use a name from the certificate",
			finding.OneLine(host.Host, MaxReason), certificateNames(host.Certificate), day(host.Certificate.NotAfter))
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// certificateNames returns the hosts of a certificate, or its subject if it has no hosts.
func certificateNames(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{c.Subject.CommonName}
	}
	const most = 3
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return finding.OneLine(strings.Join(names, ", "), maxSnippet)
}
