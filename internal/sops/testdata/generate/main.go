// Command generate encrypts the files beside it with the SOPS library itself, for the tests of package sops.
//
//	go run . ..
//
// The keys stay the same, if they are there: scripts hold copies of them.
package main

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"
)

const secret = `apiVersion: v1
kind: Secret
metadata:
    name: login
    namespace: default
type: Opaque
stringData:
    username: helm
    # which one
    password: correct-horse-sops
`

const several = `apiVersion: v1
kind: Secret
metadata:
    name: first
stringData:
    username: helm
---
apiVersion: v1
kind: ConfigMap
metadata:
    name: second
data:
    host: example.org
`

const types = `text: some words
empty: ""
whole: 42
half: 0.5
"yes": true
when: 2024-11-01T12:31:15Z
nothing: null
list:
    - one
    - 2
    - deep: [true, "false"]
plain_unencrypted: as it is
word: "yes"
digits: "007"
`

const env = "TOKEN=correct-horse-sops\nLINES=a\\nb\n"

type spec struct {
	name, text string
	store      sops.Store
	meta       sops.Metadata
	groups     [][]string // names of keys
}

func main() {
	log.SetFlags(0)
	dir := os.Args[1]
	k := readKeys(dir)
	y, j, e := yaml.NewStore(&config.YAMLStoreConfig{}), json.NewStore(&config.JSONStoreConfig{}), dotenv.NewStore(&config.DotenvStoreConfig{})
	regex := sops.Metadata{EncryptedRegex: "^(data|stringData)$"}
	for _, s := range []spec{
		{"secret.yaml", secret, y, regex, [][]string{{"age"}}},
		{"other.yaml", secret, y, regex, [][]string{{"other"}}},
		{"both.yaml", secret, y, regex, [][]string{{"other", "age"}}},
		{"pgp.yaml", secret, y, regex, [][]string{{"pgp"}}},
		{"shamir.yaml", secret, y, sops.Metadata{EncryptedRegex: "^stringData$", ShamirThreshold: 2}, [][]string{{"age"}, {"other"}, {"third"}}},
		{"maconly.yaml", secret, y, sops.Metadata{EncryptedRegex: "^stringData$", MACOnlyEncrypted: true}, [][]string{{"age"}}},
		{"suffix.yaml", "metadata: {name: x}\ndata_enc: secret\nother: plain\n", y, sops.Metadata{EncryptedSuffix: "_enc"}, [][]string{{"age"}}},
		{"unregex.yaml", secret, y, sops.Metadata{UnencryptedRegex: "^(apiVersion|kind|metadata|type)$"}, [][]string{{"age"}}},
		{"several.yaml", several, y, regex, [][]string{{"age"}}},
		{"types.yaml", types, y, sops.Metadata{UnencryptedSuffix: sops.DefaultUnencryptedSuffix}, [][]string{{"age"}}},
		{"types.json", `{"text": "a/b \u00e9 <x>", "number": 12.5, "list": [1, true, null, "x"]}`, j, sops.Metadata{UnencryptedSuffix: "_unencrypted"}, [][]string{{"age"}}},
		{"app.env", env, e, sops.Metadata{UnencryptedSuffix: "_unencrypted"}, [][]string{{"age"}}},
		{"file.bin", "not a map\n\x00\x01", json.NewBinaryStore(&config.JSONBinaryStoreConfig{}), sops.Metadata{UnencryptedSuffix: "_unencrypted"}, [][]string{{"age"}}},
	} {
		write(filepath.Join(dir, s.name), k.encrypt(s))
	}
}

func (k *keyring) encrypt(s spec) []byte {
	branches, err := s.store.LoadPlainFile([]byte(s.text))
	check(err)
	s.meta.Version, s.meta.LastModified = "3.10.2", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, names := range s.groups {
		var group sops.KeyGroup
		for _, name := range names {
			group = append(group, k.master(name))
		}
		s.meta.KeyGroups = append(s.meta.KeyGroups, group)
	}
	tree := sops.Tree{Branches: branches, Metadata: s.meta}
	key, errs := tree.GenerateDataKey()
	if len(errs) > 0 && !strings.HasPrefix(s.name, "pgp") {
		log.Fatal(errs)
	}
	if strings.HasPrefix(s.name, "pgp") {
		key = bytes.Repeat([]byte{7}, 32)
		tree.Metadata.KeyGroups[0][0].SetEncryptedDataKey(k.seal(key))
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(key, cipher)
	check(err)
	tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, key, tree.Metadata.LastModified.Format(time.RFC3339))
	check(err)
	out, err := s.store.EmitEncryptedFile(tree)
	check(err)
	return out
}

type keyring struct {
	age map[string]*age.X25519Identity
	pgp *openpgp.Entity
}

func readKeys(dir string) *keyring {
	k := &keyring{age: map[string]*age.X25519Identity{}}
	for _, name := range []string{"age", "other", "third"} {
		file := filepath.Join(dir, name+".agekey")
		text, err := os.ReadFile(file)
		if err != nil {
			id, err := age.GenerateX25519Identity()
			check(err)
			text = []byte("# public key: " + id.Recipient().String() + "\n" + id.String() + "\n")
			write(file, text)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		id, err := age.ParseX25519Identity(lines[len(lines)-1])
		check(err)
		k.age[name] = id
	}
	file := filepath.Join(dir, "pgp.asc")
	text, err := os.ReadFile(file)
	if err != nil {
		e, err := openpgp.NewEntity("helmsrc", "test", "test@example.org", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
		check(err)
		var b bytes.Buffer
		w, err := armor.Encode(&b, openpgp.PrivateKeyType, nil)
		check(err)
		check(e.SerializePrivate(w, nil))
		check(w.Close())
		text = b.Bytes()
		write(file, text)
	}
	list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
	check(err)
	k.pgp = list[0]
	return k
}

func (k *keyring) master(name string) keys.MasterKey {
	if name == "pgp" {
		return pgpKey(k)
	}
	m, err := sopsage.MasterKeyFromRecipient(k.age[name].Recipient().String())
	check(err)
	return m
}

// seal encrypts for the PGP key as the library does, which looks for public keys in the user's keyring.
func (k *keyring) seal(key []byte) []byte {
	var b bytes.Buffer
	a, err := armor.Encode(&b, "PGP MESSAGE", nil)
	check(err)
	w, err := openpgp.Encrypt(a, []*openpgp.Entity{k.pgp}, nil, &openpgp.FileHints{IsBinary: true}, nil)
	check(err)
	_, err = w.Write(key)
	check(err)
	check(w.Close())
	check(a.Close())
	return b.Bytes()
}

func write(name string, data []byte) { check(os.WriteFile(name, data, 0o600)) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
