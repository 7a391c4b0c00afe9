package sops

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// maxDataKey is the limit of a decrypted data key or a share of it, in bytes. Keys have 32 bytes, shares one more.
const maxDataKey = 1 << 10

// metadata is the metadata that SOPS adds to a file.
type metadata struct {
	group           `yaml:",inline"`
	KeyGroups       []group `yaml:"key_groups"`
	ShamirThreshold int     `yaml:"shamir_threshold"`

	LastModified      string `yaml:"lastmodified"`
	MAC               string `yaml:"mac"`
	MACOnlyEncrypted  bool   `yaml:"mac_only_encrypted"`
	UnencryptedSuffix string `yaml:"unencrypted_suffix"`
	EncryptedSuffix   string `yaml:"encrypted_suffix"`
	UnencryptedRegex  string `yaml:"unencrypted_regex"`
	EncryptedRegex    string `yaml:"encrypted_regex"`

	UnencryptedCommentRegex string `yaml:"unencrypted_comment_regex"`
	EncryptedCommentRegex   string `yaml:"encrypted_comment_regex"`
}

// group is a set of keys. Each of them encrypts the same part.
type group struct {
	Age []struct {
		Recipient string `yaml:"recipient"`
		Enc       string `yaml:"enc"`
	} `yaml:"age"`
	PGP []struct {
		Fingerprint string `yaml:"fp"`
		Enc         string `yaml:"enc"`
	} `yaml:"pgp"`
	KMS   []any `yaml:"kms"`
	GCP   []any `yaml:"gcp_kms"`
	Azure []any `yaml:"azure_kv"`
	Vault []any `yaml:"hc_vault"`
	Cloud []any `yaml:"hckms"`
}

func (g *group) recipients() []string {
	var list []string
	for _, a := range g.Age {
		list = append(list, a.Recipient)
	}
	for _, p := range g.PGP {
		list = append(list, "PGP key "+p.Fingerprint)
	}
	for _, s := range []struct {
		name string
		n    int
	}{{"AWS KMS", len(g.KMS)}, {"Google Cloud KMS", len(g.GCP)}, {"Azure Key Vault", len(g.Azure)}, {"HashiCorp Vault", len(g.Vault)}, {"Huawei Cloud KMS", len(g.Cloud)}} {
		if s.n > 0 {
			list = append(list, s.name)
		}
	}
	return list
}

func (m *metadata) recipients() []string {
	list := m.group.recipients()
	for i := range m.KeyGroups {
		list = append(list, m.KeyGroups[i].recipients()...)
	}
	return unique(list)
}

// KeyError reports a text that the available keys cannot decrypt.
type KeyError struct {
	Recipients []string
	causes     []error
}

func (e *KeyError) Error() string {
	text := "cannot get sops data key: none of the available keys is that of " + join(e.Recipients)
	if len(e.causes) > 0 {
		text += ": " + e.causes[0].Error()
	}
	return text
}

// Hint returns advice how to pass a key.
func (e *KeyError) Hint() string {
	age, pgp, service := false, false, false
	for _, r := range e.Recipients {
		switch {
		case strings.HasPrefix(r, "age"):
			age = true
		case strings.HasPrefix(r, "PGP"):
			pgp = true
		default:
			service = true
		}
	}
	switch {
	case age:
		return "set SOPS_AGE_KEY_FILE or SOPS_AGE_KEY to a private key of " + join(e.Recipients)
	case len(e.Recipients) == 0:
		return "it names no key that would decrypt it: encrypt it again"
	case pgp:
		return "set SOPS_PGP_KEY_FILE to an armoured private key of " + join(e.Recipients)
	case service:
		return "keys in " + join(e.Recipients) + " cannot be used: decrypt the file first, or encrypt it for an age key too"
	}
	return ""
}

func join(list []string) string {
	if len(list) == 0 {
		return "nobody"
	}
	return strings.Join(list, ", ")
}

// dataKey returns the key that encrypts the values.
func (k *Keys) dataKey(m *metadata) ([]byte, error) {
	e := &KeyError{Recipients: m.recipients()}
	if len(m.KeyGroups) == 0 {
		return k.part(&m.group, e)
	}
	var parts [][]byte
	for i := range m.KeyGroups {
		if part, err := k.part(&m.KeyGroups[i], e); err == nil {
			parts = append(parts, part)
		}
	}
	switch {
	case len(m.KeyGroups) == 1 && len(parts) == 1:
		return parts[0], nil
	case len(parts) == 0, len(m.KeyGroups) == 1, len(parts) < m.ShamirThreshold:
		return nil, e
	}
	return combine(parts)
}

// part decrypts the part that the keys of one group encrypt.
func (k *Keys) part(g *group, e *KeyError) ([]byte, error) {
	for _, a := range g.Age {
		if len(k.age) == 0 {
			break
		}
		part, err := k.openAge(a.Enc)
		if err == nil {
			return part, nil
		}
		var none *age.NoIdentityMatchError
		if !errors.As(err, &none) {
			e.causes = append(e.causes, fmt.Errorf("age: %w", err))
		}
	}
	for _, p := range g.PGP {
		if len(k.pgp) == 0 {
			break
		}
		part, err := k.openPGP(p.Enc)
		if err == nil {
			return part, nil
		}
	}
	return nil, e
}

func (k *Keys) openAge(enc string) ([]byte, error) {
	r, err := age.Decrypt(armor.NewReader(strings.NewReader(enc)), k.age...)
	if err != nil {
		return nil, err
	}
	return readKey(r)
}

func (k *Keys) openPGP(enc string) ([]byte, error) {
	block, err := pgparmor.Decode(strings.NewReader(enc))
	if err != nil {
		return nil, err
	}
	message, err := openpgp.ReadMessage(block.Body, k.pgp, nil, nil)
	if err != nil {
		return nil, err
	}
	return readKey(message.UnverifiedBody)
}

var errMetadata = errors.New("sops metadata cannot be read")

// decodeMetadata decodes metadata, and sets the default of SOPS for unencrypted names.
func decodeMetadata(n *yaml.Node) (*metadata, error) {
	m := &metadata{}
	if bound.Decode(n, m) != nil {
		return nil, errMetadata
	}
	if m.UnencryptedSuffix+m.EncryptedSuffix+m.UnencryptedRegex+m.EncryptedRegex+m.UnencryptedCommentRegex+m.EncryptedCommentRegex == "" {
		m.UnencryptedSuffix = "_unencrypted"
	}
	return m, nil
}
