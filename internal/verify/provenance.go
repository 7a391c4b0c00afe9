package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	godigest "github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// A Keyring holds the public PGP keys that provenance files may be signed with.
type Keyring struct{ keys openpgp.EntityList }

// ParseKeyring reads exported keys, binary as for Helm or armored. The error is a [*SettingsError].
func ParseKeyring(content []byte) (*Keyring, error) {
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(content))
	if err == nil && len(keys) == 0 {
		err = errors.New("no keys in it")
	}
	if err != nil {
		return nil, unusable(keyringHint(content), "the keyring cannot be read", err)
	}
	return &Keyring{keys}, nil
}

func keyringHint(content []byte) string {
	if len(content) > 12 && string(content[8:12]) == "KBXf" {
		return "this is GnuPG's own format: 'gpg --export > keyring.gpg' writes a usable keyring"
	}
	return ""
}

// Provenance checks a chart's provenance file as `helm verify` does: that one of the keys signed it, and that the archive has
// the hash that it lists under the file name. If the signature is valid, it reads the archive to its end.
//
// The error reports that there is no provenance or that a limit is exceeded, or is a [*RefusedError]. Any other error is from
// the archive's reader.
func Provenance(archive io.Reader, file string, provenance []byte, ring *Keyring) (*Signer, error) {
	switch {
	case len(provenance) == 0:
		return nil, unsigned(fmt.Sprintf("there is no provenance file for %s", file))
	case len(provenance) > maxSignatureBytes:
		return nil, tooLarge("provenance file for "+file, maxSignatureBytes)
	}
	var sums map[string]string
	signer, err := guarded(func() (signer *Signer, err error) {
		signer, sums, err = ring.open(provenance)
		return signer, err
	})
	if err != nil {
		return nil, err
	}
	w := digest.NewWriter(godigest.SHA256)
	if _, err := io.Copy(w, archive); err != nil {
		return nil, err
	}
	want, ok := sums[file]
	switch {
	case !ok:
		return nil, refusal(otherFile(sums), "provenance does not contain a SHA for a file named %q", file)
	case want != w.Digest().String():
		return nil, refusal("the archive is not the one that was signed", "sha256 sum does not match for %s: %.80q != %q", file, want, w.Digest())
	}
	return signer, nil
}

func otherFile(sums map[string]string) string {
	for name := range sums {
		if len(sums) == 1 {
			return fmt.Sprintf("it is the provenance of %.200q", name)
		}
	}
	return ""
}

// open returns the signer of a provenance file, and the hashes in it by file name.
func (k *Keyring) open(provenance []byte) (*Signer, map[string]string, error) {
	block, _ := clearsign.Decode(provenance)
	if block == nil {
		return nil, nil, refusal("", "failed to decode signature: signature block not found")
	}
	sig, entity, err := openpgp.VerifyDetachedSignature(k.keys, bytes.NewReader(block.Bytes), block.ArmoredSignature.Body, &packet.Config{})
	if err != nil {
		return nil, nil, refusal(pgpHint(err), "%v", err)
	}
	_, text, ok := bytes.Cut(block.Plaintext, []byte("\n...\n"))
	if !ok {
		return nil, nil, refusal("", "message block must have at least two parts")
	}
	text, _, _ = bytes.Cut(text, []byte("\n...\n"))
	var collection struct {
		Files map[string]string `json:"files"`
	}
	if err := yaml.Unmarshal(text, &collection); err != nil {
		return nil, nil, refusal("", "the hashes cannot be read: %.200v", err)
	}
	return pgpSigner(sig, entity), collection.Files, nil
}

func pgpSigner(sig *packet.Signature, entity *openpgp.Entity) *Signer {
	var names []string
	for name := range entity.Identities {
		names = append(names, name)
	}
	slices.Sort(names)
	return &Signer{
		Format:   FormatProvenance,
		Key:      fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint),
		Identity: oneLine(strings.Join(names, ", ")),
		Time:     sig.CreationTime.UTC(),
	}
}

func pgpHint(err error) string {
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "the keyring does not contain the key that it was signed with"
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return "a newer export of the key may have a later expiry"
	}
	return ""
}
