//go:debug x509usefallbackroots=1

package auth_test

import (
	"crypto/x509"
	"sync"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// systemCA is an authority that the whole process trusts as if it were one of the system's.
var systemCA = sync.OnceValues(func() (*helmtest.CA, error) {
	ca, err := helmtest.NewCA("system")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.Cert)
	x509.SetFallbackRoots(pool)
	return ca, nil
})
