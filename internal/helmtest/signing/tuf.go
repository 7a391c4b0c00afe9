package signing

import (
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// A TUF repository publishes one file.
type TUF struct {
	// Root is the metadata that the trust in the repository begins with.
	Root  []byte
	files map[string][]byte
}

// NewTUF publishes a file under a name, in metadata that is valid until a time.
func NewTUF(name string, content []byte, until time.Time) (*TUF, error) {
	sum := sha256.Sum256(content)
	target, err := metadata.TargetFile().FromBytes(name, content, "sha256")
	if err != nil {
		return nil, err
	}
	r := metadata.Root(until)
	targets, snapshot, timestamp := metadata.Targets(until), metadata.Snapshot(until), metadata.Timestamp(until)
	targets.Signed.Targets[name] = target
	signers := map[string]signature.Signer{}
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		if signers[role], err = addTUFKey(r, role); err != nil {
			return nil, err
		}
	}
	t := &TUF{files: map[string][]byte{"/targets/" + hex.EncodeToString(sum[:]) + "." + name: content}}
	if t.Root, err = signTUF(r, signers[metadata.ROOT]); err != nil {
		return nil, err
	}
	t.files["/1.root.json"] = t.Root
	if t.files["/1.targets.json"], err = signTUF(targets, signers[metadata.TARGETS]); err != nil {
		return nil, err
	}
	if t.files["/1.snapshot.json"], err = signTUF(snapshot, signers[metadata.SNAPSHOT]); err != nil {
		return nil, err
	}
	t.files["/timestamp.json"], err = signTUF(timestamp, signers[metadata.TIMESTAMP])
	return t, err
}

func addTUFKey(r *metadata.Metadata[metadata.RootType], role string) (signature.Signer, error) {
	private, err := newPrivateKey("ed25519")
	if err != nil {
		return nil, err
	}
	key, err := metadata.KeyFromPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	if err := r.Signed.AddKey(key, role); err != nil {
		return nil, err
	}
	return signature.LoadSigner(private, crypto.Hash(0))
}

func signTUF[T metadata.Roles](m *metadata.Metadata[T], by signature.Signer) ([]byte, error) {
	if _, err := m.Sign(by); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return m.ToBytes(false)
}

// ServeHTTP serves the files.
func (t *TUF) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := t.files[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = w.Write(content)
}
