package signing

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"helm.sh/helm/v3/pkg/provenance"
)

// A PGPKey signs charts as `helm package --sign` does.
type PGPKey struct{ entity *openpgp.Entity }

// NewPGPKey returns a new key for a name and an address.
func NewPGPKey(name, address string, c *packet.Config) (*PGPKey, error) {
	e, err := openpgp.NewEntity(name, "", address, c)
	return &PGPKey{e}, err
}

// Keyring exports the public key.
func (k *PGPKey) Keyring() ([]byte, error) {
	var b bytes.Buffer
	err := k.entity.Serialize(&b)
	return b.Bytes(), err
}

// Sign returns the provenance file for an archive under a file name.
func (k *PGPKey) Sign(archive []byte, file string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "signing")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	name := filepath.Join(dir, file)
	if err := os.WriteFile(name, archive, 0o600); err != nil {
		return nil, err
	}
	text, err := (&provenance.Signatory{Entity: k.entity}).ClearSign(name)
	return []byte(text), err
}
