package signing

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/crypto/ocsp"
	"oras.land/oras-go/v2/registry/remote"
)

// The forms of notation's envelopes.
const (
	JWS  = jws.MediaTypeEnvelope
	COSE = cose.MediaTypeEnvelope
)

// An Authority issues certificates for signing code.
type Authority struct {
	Certificate []byte // PEM
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	revoked     map[string]bool
}

// NewAuthority returns an authority with a root certificate.
func NewAuthority(name string) (*Authority, error) {
	key, err := newPrivateKey("ecdsa")
	if err != nil {
		return nil, err
	}
	a := &Authority{key: key.(*ecdsa.PrivateKey), revoked: map[string]bool{}}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{Country: []string{"XX"}, Province: []string{"Test"}, Organization: []string{"Test"}, CommonName: name},
		NotBefore:             time.Now().Add(-1000 * time.Hour),
		NotAfter:              time.Now().Add(1000 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	a.certificate, err = issueCertificate(template, template, key.Public(), key)
	a.Certificate = certificatePEM(a.certificate)
	return a, err
}

func issueCertificate(template, parent *x509.Certificate, key crypto.PublicKey, by crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func certificatePEM(c *x509.Certificate) []byte {
	if c == nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// A Notary signs with a certificate, as `notation sign` does.
type Notary struct {
	Certificate []byte // PEM
	key         crypto.Signer
	chain       []*x509.Certificate
	authority   *Authority
}

// Issue returns a notary with a certificate that is valid for some days from a time on. OCSP is the URL of the server that
// reports revoked certificates, and may be empty.
func (a *Authority) Issue(name string, from time.Time, days int, ocspServer string) (*Notary, error) {
	key, err := newPrivateKey("ecdsa")
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{Country: []string{"XX"}, Province: []string{"Test"}, Organization: []string{"Test"}, CommonName: name},
		NotBefore:    from,
		NotAfter:     from.AddDate(0, 0, days),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if ocspServer != "" {
		template.OCSPServer = []string{ocspServer}
	}
	leaf, err := issueCertificate(template, a.certificate, key.Public(), a.key)
	return &Notary{certificatePEM(leaf), key, []*x509.Certificate{leaf, a.certificate}, a}, err
}

// Revoke makes the OCSP server report that the notary's certificate was revoked.
func (n *Notary) Revoke() { n.authority.revoked[n.chain[0].SerialNumber.String()] = true }

// OCSP answers requests about the authority's certificates.
func (a *Authority) OCSP() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := ocspRequest(r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		response := ocsp.Response{
			SerialNumber: content.SerialNumber,
			ThisUpdate:   time.Now().Add(-time.Minute),
			NextUpdate:   time.Now().Add(time.Hour),
			Certificate:  a.certificate,
			IssuerHash:   content.HashAlgorithm,
		}
		if a.revoked[content.SerialNumber.String()] {
			response.Status, response.RevokedAt = ocsp.Revoked, time.Now().Add(-time.Hour)
		}
		b, err := ocsp.CreateResponse(a.certificate, a.certificate, response, a.key)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(b)
	})
}

// Sign pushes a signature in one of the forms.
func (n *Notary) Sign(ctx context.Context, t Target, form string) error {
	s, err := signer.NewGenericSigner(n.key, n.chain)
	if err != nil {
		return err
	}
	return t.notarize(ctx, form, func(d ocispec.Descriptor) ([]byte, error) {
		envelope, _, err := s.Sign(ctx, d, notation.SignerSignOptions{SignatureMediaType: form})
		return envelope, err
	})
}

// SignAt pushes a signature with an earlier time, which is trusted until expiry, unless that is zero.
func (n *Notary) SignAt(ctx context.Context, t Target, form string, at, expiry time.Time) error {
	s, err := signature.NewLocalSigner(n.chain, n.key)
	if err != nil {
		return err
	}
	return t.notarize(ctx, form, func(d ocispec.Descriptor) ([]byte, error) {
		content, err := json.Marshal(map[string]any{"targetArtifact": d})
		if err != nil {
			return nil, err
		}
		e, err := signature.NewEnvelope(form)
		if err != nil {
			return nil, err
		}
		return e.Sign(&signature.SignRequest{
			Payload:       signature.Payload{ContentType: "application/vnd.cncf.notary.payload.v1+json", Content: content},
			Signer:        s,
			SigningTime:   at,
			Expiry:        expiry,
			SigningScheme: signature.SigningSchemeX509,
		})
	})
}

// notarize pushes the envelope that sign returns for the target.
func (t Target) notarize(ctx context.Context, form string, sign func(ocispec.Descriptor) ([]byte, error)) error {
	repo, err := remote.NewRepository(t.Repository)
	if err != nil {
		return err
	}
	repo.PlainHTTP = t.Insecure
	repo.Client = &http.Client{Transport: t.Transport}
	subject, err := repo.Resolve(ctx, t.Digest)
	if err != nil {
		return err
	}
	claimed, err := repo.Resolve(ctx, t.claim())
	if err != nil {
		return err
	}
	envelope, err := sign(ocispec.Descriptor{MediaType: claimed.MediaType, Digest: claimed.Digest, Size: claimed.Size})
	if err != nil {
		return err
	}
	_, _, err = notationregistry.NewRepository(repo).PushSignature(ctx, form, envelope, subject, map[string]string{
		"io.cncf.notary.x509chain.thumbprint#S256": "[]",
		"org.opencontainers.image.created":         time.Now().UTC().Format(time.RFC3339Nano),
	})
	return err
}

// ocspRequest parses a GET or POST request.
func ocspRequest(r *http.Request) (*ocsp.Request, error) {
	if r.Method == http.MethodPost {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return ocsp.ParseRequest(b)
	}
	b, err := decodeOCSPPath(r.URL.EscapedPath())
	if err != nil {
		return nil, err
	}
	return ocsp.ParseRequest(b)
}

// decodeOCSPPath decodes the request at the end of a path: it is base64, which may contain slashes, and escaped.
func decodeOCSPPath(escaped string) ([]byte, error) {
	text, err := url.PathUnescape(strings.TrimPrefix(escaped, "/"))
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}
