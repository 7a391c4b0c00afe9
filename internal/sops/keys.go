package sops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
)

// Keys are private keys. They never print their content.
type Keys struct {
	age []age.Identity
	pgp openpgp.EntityList
}

// AddAge adds the private keys of a file in the format of age-keygen. Its errors do not contain the text.
func (k *Keys) AddAge(text []byte) error {
	found := 0
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, err := identity(line)
		if err != nil {
			return fmt.Errorf("line %d is not an age private key", i+1)
		}
		k.age = append(k.age, id)
		found++
	}
	if found == 0 {
		return errors.New("no age private key in it")
	}
	return nil
}

func identity(line string) (age.Identity, error) {
	if strings.HasPrefix(line, "AGE-SECRET-KEY-PQ-") {
		return age.ParseHybridIdentity(line)
	}
	return age.ParseX25519Identity(line)
}

// AddPGP adds armoured private keys without a passphrase.
func (k *Keys) AddPGP(text []byte) error {
	list, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(text))
	if err != nil {
		return errors.New("no armoured PGP key in it")
	}
	found := 0
	for _, e := range list {
		switch {
		case e.PrivateKey == nil:
		case e.PrivateKey.Encrypted:
			return errors.New("the PGP private key has a passphrase: use a key without one")
		default:
			found++
		}
	}
	if found == 0 {
		return errors.New("no PGP private key in it")
	}
	k.pgp = append(k.pgp, list...)
	return nil
}

// With returns the union of two sets of keys.
func (k *Keys) With(more *Keys) *Keys {
	union := &Keys{}
	for _, one := range []*Keys{k, more} {
		if one != nil {
			union.age = append(union.age, one.age...)
			union.pgp = append(union.pgp, one.pgp...)
		}
	}
	return union
}

func (k *Keys) String() string { return fmt.Sprintf("%d age and %d PGP keys", len(k.age), len(k.pgp)) }

// GoString returns String: %#v must not print the keys.
func (k *Keys) GoString() string { return k.String() }

func readKey(r io.Reader) ([]byte, error) {
	key, err := io.ReadAll(io.LimitReader(r, maxDataKey+1))
	if err == nil && len(key) > maxDataKey {
		err = errors.New("the data key is too long")
	}
	return key, err
}
