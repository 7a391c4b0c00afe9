package signing

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// Earlier returns the configuration for keys and signatures that are older than the fixed clock of the scripts.
func Earlier() *packet.Config {
	return &packet.Config{Time: func() time.Time { return helmtest.Created }}
}

// SignGit signs a commit or a tag as `git commit -S` does.
func (k *PGPKey) SignGit(payload []byte) ([]byte, error) {
	var b bytes.Buffer
	err := openpgp.ArmoredDetachSign(&b, k.entity, bytes.NewReader(payload), Earlier())
	return append(b.Bytes(), '\n'), err
}

// Armored exports the public key as text.
func (k *PGPKey) Armored() ([]byte, error) {
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.PublicKeyType, nil)
	if err != nil {
		return nil, err
	}
	err = errors.Join(k.entity.Serialize(w), w.Close())
	return b.Bytes(), err
}

// An SSHKey signs commits and tags.
type SSHKey struct{ signer ssh.Signer }

// NewSSHKey returns a new key.
func NewSSHKey() (*SSHKey, error) {
	_, signer, err := helmtest.NewSSHKey("")
	return &SSHKey{signer}, err
}

// Authorized returns the public key as a line of authorized_keys.
func (k *SSHKey) Authorized() []byte { return ssh.MarshalAuthorizedKey(k.signer.PublicKey()) }

// SignGit signs a commit or a tag as `git -c gpg.format=ssh commit -S` does; the format is that of PROTOCOL.sshsig.
func (k *SSHKey) SignGit(payload []byte) ([]byte, error) {
	const namespace, hash = "git", "sha512"
	sum := sha512.Sum512(payload)
	magic := []byte("SSHSIG")
	signature, err := k.signer.Sign(rand.Reader, append(magic, ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{namespace, "", hash, sum[:]})...))
	if err != nil {
		return nil, err
	}
	blob := append(magic, ssh.Marshal(struct {
		Version                   uint32
		Key                       []byte
		Namespace, Reserved, Hash string
		Signature                 []byte
	}{1, k.signer.PublicKey().Marshal(), namespace, "", hash, ssh.Marshal(signature)})...)
	return pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob}), nil
}
