package signing

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/url"
	"time"

	ct "github.com/google/certificate-transparency-go"
	cttls "github.com/google/certificate-transparency-go/tls"
	ctx509 "github.com/google/certificate-transparency-go/x509"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// A Sigstore is a private Fulcio with its certificate log, a Rekor and a timestamp authority. The latter two are those of
// sigstore-go's testing CA, whose certificates are not logged.
type Sigstore struct {
	rekor        *ca.VirtualSigstore
	root         *x509.Certificate
	intermediate *x509.Certificate
	issuing      *ecdsa.PrivateKey
	log          *ecdsa.PrivateKey
}

// NewSigstore returns a Sigstore with new keys.
func NewSigstore() (*Sigstore, error) {
	s := &Sigstore{}
	var err error
	if s.rekor, err = ca.NewVirtualSigstore(); err != nil {
		return nil, err
	}
	var rootKey *ecdsa.PrivateKey
	if s.root, rootKey, err = ca.GenerateRootCa(); err != nil {
		return nil, err
	}
	if s.intermediate, s.issuing, err = ca.GenerateFulcioIntermediate(s.root, rootKey); err != nil {
		return nil, err
	}
	key, err := newPrivateKey("ecdsa")
	if err != nil {
		return nil, err
	}
	s.log = key.(*ecdsa.PrivateKey)
	return s, nil
}

// TrustedRoot returns the trusted_root.json of the Sigstore.
func (s *Sigstore) TrustedRoot() ([]byte, error) {
	start := time.Now().Add(-time.Hour)
	authority := &root.FulcioCertificateAuthority{
		Root: s.root, Intermediates: []*x509.Certificate{s.intermediate},
		ValidityPeriodStart: start, URI: "https://fulcio.test",
	}
	rekor := map[string]*root.TransparencyLog{}
	for id, l := range s.rekor.RekorLogs() {
		sum, err := keyID(l.PublicKey)
		if err != nil {
			return nil, err
		}
		l.ID, l.BaseURL = sum[:], "https://rekor.localhost"
		rekor[id] = l
	}
	id, err := keyID(s.log.Public())
	if err != nil {
		return nil, err
	}
	certificates := map[string]*root.TransparencyLog{string(id[:]): {
		BaseURL: "https://ct.test", ID: id[:], ValidityPeriodStart: start,
		HashFunc: crypto.SHA256, SignatureHashFunc: crypto.SHA256, PublicKey: s.log.Public(),
	}}
	t, err := root.NewTrustedRoot(root.TrustedRootMediaType01, []root.CertificateAuthority{authority}, certificates,
		s.rekor.TimestampingAuthorities(), rekor)
	if err != nil {
		return nil, err
	}
	return t.MarshalJSON()
}

func keyID(key crypto.PublicKey) ([sha256.Size]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	return sha256.Sum256(der), err
}

// certificate issues a certificate for a key, valid for ten minutes from the time of issue on, with the promise of the
// certificate log.
func (s *Sigstore) certificate(key crypto.PublicKey, k Keyless) (*x509.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    k.issued(),
		NotAfter:     k.issued().Add(10 * time.Minute),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: []pkix.Extension{{
			Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(k.Issuer),
		}},
	}
	if u, err := url.Parse(k.Subject); err == nil && u.Scheme != "" {
		template.URIs = []*url.URL{u}
	} else {
		template.EmailAddresses = []string{k.Subject}
	}
	if !k.NoSCT {
		list, err := s.signCertificate(template, key)
		if err != nil {
			return nil, err
		}
		template.ExtraExtensions = append(template.ExtraExtensions, pkix.Extension{
			Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: list,
		})
	}
	return s.issue(template, key)
}

func (s *Sigstore) issue(template *x509.Certificate, key crypto.PublicKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, s.intermediate, key, s.issuing)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// signCertificate signs the certificate before it is issued, as a log does.
func (s *Sigstore) signCertificate(template *x509.Certificate, key crypto.PublicKey) ([]byte, error) {
	bare, err := s.issue(template, key)
	if err != nil {
		return nil, err
	}
	id, err := keyID(s.log.Public())
	if err != nil {
		return nil, err
	}
	sct := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1,
		LogID:      ct.LogID{KeyID: id},
		Timestamp:  uint64(time.Now().UnixMilli()),
	}
	entry := ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version:  ct.V1,
		LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			Timestamp: sct.Timestamp,
			EntryType: ct.PrecertLogEntryType,
			PrecertEntry: &ct.PreCert{
				IssuerKeyHash:  sha256.Sum256(s.intermediate.RawSubjectPublicKeyInfo),
				TBSCertificate: bare.RawTBSCertificate,
			},
		},
	}}
	input, err := ct.SerializeSCTSignatureInput(sct, entry)
	if err != nil {
		return nil, err
	}
	signed, err := cttls.CreateSignature(*s.log, cttls.SHA256, input)
	if err != nil {
		return nil, err
	}
	sct.Signature = ct.DigitallySigned(signed)
	return sctList(sct)
}

// sctList returns the value of the extension with a single promise.
func sctList(sct ct.SignedCertificateTimestamp) ([]byte, error) {
	one, err := cttls.Marshal(sct)
	if err != nil {
		return nil, err
	}
	list, err := cttls.Marshal(ctx509.SignedCertificateTimestampList{SCTList: []ctx509.SerializedSCT{{Val: one}}})
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(list)
}
