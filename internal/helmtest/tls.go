package helmtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// CA is a certificate authority for one test.
type CA struct {
	Cert []byte // PEM
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu    sync.Mutex
	pairs map[string]Pair
}

// Pair is a certificate with its key, both PEM.
type Pair struct{ Cert, Key []byte }

// NewCA returns a new authority. Certificates are valid from 1980 to 2099, under a fixed clock as well as under the real one.
func NewCA(commonName string) (*CA, error) {
	tmpl := template(commonName)
	tmpl.IsCA, tmpl.BasicConstraintsValid = true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &CA{Cert: block("CERTIFICATE", der), cert: cert, key: key, pairs: map[string]Pair{}}, nil
}

func template(commonName string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // crypto/rand does not fail
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// expired is the prefix of the name of a host with an expired certificate.
const expired = "expired "

// Server returns a certificate for a host name or IP address.
func (ca *CA) Server(host string) (Pair, error) {
	name := host
	host, old := strings.CutPrefix(host, expired)
	tmpl := template(host)
	if old {
		tmpl.NotAfter = time.Date(2025, 6, 30, 0, 0, 0, 0, time.UTC)
	}
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		tmpl.IPAddresses = []net.IP{ip}
	} else {
		tmpl.DNSNames = []string{host}
	}
	return ca.issue("server "+name, tmpl)
}

// Client returns a client certificate.
func (ca *CA) Client(commonName string) (Pair, error) {
	tmpl := template(commonName)
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return ca.issue("client "+commonName, tmpl)
}

func (ca *CA) issue(name string, tmpl *x509.Certificate) (Pair, error) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if p, ok := ca.pairs[name]; ok {
		return p, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.cert, key.Public(), ca.key)
	if err != nil {
		return Pair{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	p := Pair{block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)}
	ca.pairs[name] = p
	return p, nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Pool returns a pool that contains only this authority.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// ServerConfig returns the TLS configuration of a server at host. With mutual it requires a client certificate of the same
// authority.
func (ca *CA) ServerConfig(host string, mutual bool) (*tls.Config, error) {
	p, err := ca.Server(host)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if mutual {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	}
	return c, nil
}

// Secret writes a Secret manifest of type Opaque in namespace default. The values go into `data`.
func Secret(name string, values map[string][]byte) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\n  namespace: default\ntype: Opaque\ndata:\n", name)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "  %s: %s\n", key, base64.StdEncoding.EncodeToString(values[key]))
	}
	return []byte(b.String())
}

// Kit holds the authorities of a script with TLS servers: that of the servers, an untrusted one, and a client of each.
type Kit struct {
	CA, Other           *CA
	Client, OtherClient Pair
}

// NewKit returns a new kit.
func NewKit() (*Kit, error) {
	var k Kit
	var err error
	if k.CA, err = NewCA("helmtest"); err != nil {
		return nil, err
	}
	if k.Other, err = NewCA("helmtest other"); err != nil {
		return nil, err
	}
	if k.Client, err = k.CA.Client("client"); err != nil {
		return nil, err
	}
	k.OtherClient, err = k.Other.Client("other client")
	return &k, err
}

// Files returns the kit as files: PEM, and Secrets that have the name of their file.
func (k *Kit) Files() map[string][]byte {
	tlsKeys := func(ca *CA, p Pair) map[string][]byte {
		return map[string][]byte{"ca.crt": ca.Cert, "tls.crt": p.Cert, "tls.key": p.Key}
	}
	return map[string][]byte{
		"ca.crt":            k.CA.Cert,
		"other-ca.crt":      k.Other.Cert,
		"tls.crt":           k.Client.Cert,
		"tls.key":           k.Client.Key,
		"ca.yaml":           Secret("ca", map[string][]byte{"ca.crt": k.CA.Cert}),
		"other-ca.yaml":     Secret("other-ca", map[string][]byte{"ca.crt": k.Other.Cert}),
		"client.yaml":       Secret("client", tlsKeys(k.CA, k.Client)),
		"other-client.yaml": Secret("other-client", tlsKeys(k.CA, k.OtherClient)),
		"legacy-tls.yaml": Secret("legacy-tls", map[string][]byte{
			"caFile": k.CA.Cert, "certFile": k.Client.Cert, "keyFile": k.Client.Key,
		}),
	}
}
