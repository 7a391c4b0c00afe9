package git

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/pem"
	"hash"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/crypto/ssh"
)

// payload is the text of a commit without its signature.
type payload string

func (p payload) EncodeWithoutSignature(o plumbing.EncodedObject) error {
	w, err := o.Writer()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, string(p))
	return err
}

// sshsig signs as ssh-keygen -Y sign would, with any namespace, hash and algorithm.
func sshsig(t *testing.T, signer ssh.Signer, namespace, hashName, algorithm string, of payload) string {
	t.Helper()
	h := map[string]func() hash.Hash{"sha512": sha512.New, "sha1": sha1.New}[hashName]()
	h.Write([]byte(of))
	message := append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{namespace, "", hashName, h.Sum(nil)})...)
	signature, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, message, algorithm)
	if err != nil {
		t.Fatal(err)
	}
	blob := append([]byte(sshMagic), ssh.Marshal(sshBlob{
		Version: 1, PublicKey: signer.PublicKey().Marshal(), Namespace: namespace, Hash: hashName, Signature: ssh.Marshal(signature),
	})...)
	return string(pem.EncodeToMemory(&pem.Block{Type: sshSignature, Bytes: blob}))
}

// TestSSHSignatures: a good signature of the right key counts only if it was made for Git, with hashes that are safe, and is
// all that there is.
func TestSSHSignatures(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	keys := &gitKeys{ssh: []ssh.PublicKey{signer.PublicKey()}}
	const commit = payload("tree 0123\n\nmessage\n")
	sign := func(namespace, hash, algorithm string) string {
		return sshsig(t, signer, namespace, hash, algorithm, commit)
	}
	good := sign("git", "sha512", ssh.KeyAlgoRSASHA512)
	altered := func(change func([]byte) []byte) string {
		block, _ := pem.Decode([]byte(good))
		return string(pem.EncodeToMemory(&pem.Block{Type: sshSignature, Bytes: change(bytes.Clone(block.Bytes))}))
	}
	for _, tt := range []struct{ name, signature, want string }{
		{"good", good, ""},
		{"good, with SHA-256", sign("git", "sha512", ssh.KeyAlgoRSASHA256), ""},
		{"for files", sign("file", "sha512", ssh.KeyAlgoRSASHA512), `the SSH signature is for "file", not for Git`},
		{"for nothing", sign("", "sha512", ssh.KeyAlgoRSASHA512), `the SSH signature is for "", not for Git`},
		{"for git and more", sign("git@example.com", "sha512", ssh.KeyAlgoRSASHA512), `the SSH signature is for "git@example.com", not for Git`},
		{"RSA with SHA-1", sign("git", "sha512", ssh.KeyAlgoRSA), "the SSH signature is of an insecure kind"},
		{"a digest with SHA-1", sign("git", "sha1", ssh.KeyAlgoRSASHA512), "the SSH signature is of an insecure kind"},
		{"of other bytes", sshsig(t, signer, "git", "sha512", ssh.KeyAlgoRSASHA512, commit+"!"), "unable to verify payload with any of the given authorized keys"},
		{"text behind it", good + "tree 0123\n", "the SSH signature cannot be read"},
		{"a second one", good + good, "there is more than one signature"},
		{"bytes behind it", altered(func(b []byte) []byte { return append(b, 0) }), "the SSH signature cannot be read"},
		{"another version", altered(func(b []byte) []byte { b[len(sshMagic)+3] = 2; return b }), "the SSH signature cannot be read"},
		{"cut off", altered(func(b []byte) []byte { return b[:len(b)-1] }), "the SSH signature cannot be read"},
		{"no magic word", altered(func(b []byte) []byte { b[0] = 'x'; return b }), "the SSH signature cannot be read"},
		{"another type", strings.ReplaceAll(good, "SSH SIGNATURE", "SSH SIGNATURES"), "the SSH signature cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, format, err := keys.verify(tt.signature, commit)
			if tt.want == "" {
				if err != nil || format != formatSSH || id != ssh.FingerprintSHA256(signer.PublicKey()) {
					t.Errorf("%q, %q, %v", id, format, err)
				}
			} else if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
