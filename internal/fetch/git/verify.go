package git

import (
	"bytes"
	"crypto"
	_ "crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Verification is spec.verify of a GitRepository, with the keys of its Secret.
type Verification struct {
	Mode string // HEAD, Tag or TagAndHEAD; head and anything else is HEAD
	// Keys are by the keys of the Secret: names that end in .sshpub are SSH keys, all other names armored OpenPGP keys.
	Keys map[string][]byte
}

// A VerificationError reports that a signature is missing, or not by a trusted key.
type VerificationError struct {
	finding.Problem
	Reason  string // of the condition, as source-controller has it
	Stalled bool   // another attempt is useless before the spec changes
}

func unverified(reason, format string, args ...any) *VerificationError {
	return &VerificationError{Reason: reason, Problem: finding.Problem{
		Code: finding.GitUnsigned, Class: finding.Lasting | finding.Untrusted, Text: fmt.Sprintf(format, args...),
	}}
}

// The formats of signatures.
const (
	formatPGP = "OpenPGP signature"
	formatSSH = "SSH signature"
)

// verifiedText is source-controller's message about valid signatures.
func verifiedText(signatures []fetch.Signature) string {
	if len(signatures) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("verified signature of")
	for _, s := range signatures {
		fmt.Fprintf(&b, "\n\t- %s '%s' with key '%s'", s.Object, s.Name, s.Key)
	}
	return b.String()
}

const (
	modeTag        = "Tag"
	modeTagAndHEAD = "TagAndHEAD"

	sshKeySuffix = ".sshpub"
)

// check returns the required signatures, if all of them are valid.
func (v *Verification) check(store *gitStore, target *gitTarget, commit *object.Commit, now func() time.Time) ([]fetch.Signature, error) {
	if v == nil {
		return nil, nil
	}
	var list []fetch.Signature
	keys := &gitKeys{now: now}
	if err := keys.read(v.Keys); err != nil {
		return nil, unverified("VerificationError", "%v", err)
	}
	if v.Mode == modeTag || v.Mode == modeTagAndHEAD {
		signature, err := keys.checkTag(store, target)
		if err != nil {
			return nil, err
		}
		list = append(list, signature)
	}
	if v.Mode != modeTag {
		id, format, err := keys.verify(commit.PGPSignature, commit)
		if err != nil {
			return nil, unverified("InvalidCommitSignature", "signature verification of commit '%s' failed: unable to verify Git commit: %v", commit.Hash, err)
		}
		list = append(list, fetch.Signature{Object: "commit", Name: commit.Hash.String(), Key: id, Format: format})
	}
	return list, nil
}

func (k *gitKeys) checkTag(store *gitStore, target *gitTarget) (fetch.Signature, error) {
	name, isTag := strings.CutPrefix(target.Name, tagPrefix)
	if !isTag {
		err := unverified("InvalidVerificationMode", "cannot verify tag object's signature if a tag reference is not specified")
		err.Stalled = true
		return fetch.Signature{}, err
	}
	full := fmt.Sprintf("%s@sha1:%s", name, target.Object)
	tag, err := object.GetTag(store.objects, target.Object)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return fetch.Signature{}, unverified("InvalidGitObject", "cannot verify signature of tag '%s' since it is not annotated", full)
	}
	if err != nil {
		return fetch.Signature{}, err
	}
	// A tag is signed together with its own name: a signed tag of another name may have been moved here.
	if tag.Name != name {
		return fetch.Signature{}, unverified("InvalidTagSignature",
			"signature verification of tag '%s' failed: it is signed as tag '%s'", full, finding.OneLine(tag.Name, fetch.MaxReason))
	}
	id, format, err := k.verify(tag.PGPSignature, tag)
	if err != nil {
		return fetch.Signature{}, unverified("InvalidTagSignature", "signature verification of tag '%s' failed: unable to verify Git tag: %v", full, err)
	}
	return fetch.Signature{Object: "tag", Name: full, Key: id, Format: format}, nil
}

// gitKeys are the keys that are trusted.
type gitKeys struct {
	pgp openpgp.EntityList
	ssh []ssh.PublicKey
	now func() time.Time
}

func (k *gitKeys) read(keys map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		if strings.HasSuffix(name, sshKeySuffix) {
			if err := k.readSSH(keys[name]); err != nil {
				return fmt.Errorf("SSH public keys secret error: key '%s' contains no readable SSH public key", name)
			}
			continue
		}
		list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(keys[name]))
		if err != nil {
			return fmt.Errorf("PGP public keys secret error: key '%s' contains no readable armored OpenPGP key", name)
		}
		k.pgp = append(k.pgp, list...)
	}
	return nil
}

func (k *gitKeys) readSSH(text []byte) error {
	for len(bytes.TrimSpace(text)) > 0 {
		key, _, _, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			return err
		}
		k.ssh = append(k.ssh, key)
		text = rest
	}
	return nil
}

// signed is an object with a signature.
type signed interface {
	EncodeWithoutSignature(o plumbing.EncodedObject) error
}

const sshSignature = "SSH SIGNATURE"

// verify returns the key that made the signature, and the signature's format.
func (k *gitKeys) verify(signature string, of signed) (id, format string, err error) {
	switch strings.Count(signature, "-----BEGIN ") {
	case 0:
		return "", "", errors.New("unable to verify payload as the provided signature is empty")
	case 1:
	default:
		return "", "", errors.New("there is more than one signature")
	}
	encoded := &plumbing.MemoryObject{}
	if err := of.EncodeWithoutSignature(encoded); err != nil {
		return "", "", err
	}
	r, err := encoded.Reader()
	if err != nil {
		return "", "", err
	}
	payload, err := io.ReadAll(r)
	if err != nil {
		return "", "", err
	}
	if strings.HasPrefix(strings.TrimSpace(signature), "-----BEGIN "+sshSignature) {
		id, err = k.verifySSH(signature, payload)
		return id, formatSSH, err
	}
	signer, err := openpgp.CheckArmoredDetachedSignature(k.pgp, bytes.NewReader(payload), strings.NewReader(signature),
		&packet.Config{Time: k.now})
	if err != nil {
		return "", "", errors.New("unable to verify payload with any of the given key rings")
	}
	return signer.PrimaryKey.KeyIdString(), formatPGP, nil
}

// sshBlob is a signature in the SSHSIG format, after its magic word.
type sshBlob struct {
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

const (
	sshMagic     = "SSHSIG"
	sshNamespace = "git"
)

func (k *gitKeys) verifySSH(text string, payload []byte) (string, error) {
	block, rest := pem.Decode([]byte(strings.TrimSpace(text)))
	if block == nil || block.Type != sshSignature || len(bytes.TrimSpace(rest)) > 0 {
		return "", errors.New("the SSH signature cannot be read")
	}
	var blob sshBlob
	var signature ssh.Signature
	after, ok := bytes.CutPrefix(block.Bytes, []byte(sshMagic))
	if !ok || ssh.Unmarshal(after, &blob) != nil || blob.Version != 1 || ssh.Unmarshal(blob.Signature, &signature) != nil {
		return "", errors.New("the SSH signature cannot be read")
	}
	if blob.Namespace != sshNamespace {
		return "", fmt.Errorf("the SSH signature is for %q, not for Git", finding.OneLine(blob.Namespace, fetch.MaxReason))
	}
	hashes := map[string]crypto.Hash{"sha256": crypto.SHA256, "sha512": crypto.SHA512}
	algorithm, ok := hashes[blob.Hash]
	if !ok || signature.Format == ssh.KeyAlgoRSA {
		return "", errors.New("the SSH signature is of an insecure kind")
	}
	h := algorithm.New()
	h.Write(payload)
	message := append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{blob.Namespace, blob.Reserved, blob.Hash, h.Sum(nil)})...)
	for _, key := range k.ssh {
		if bytes.Equal(key.Marshal(), blob.PublicKey) && key.Verify(message, &signature) == nil {
			return ssh.FingerprintSHA256(key), nil
		}
	}
	return "", errors.New("unable to verify payload with any of the given authorized keys")
}
