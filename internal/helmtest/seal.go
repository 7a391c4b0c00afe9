package helmtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"go.yaml.in/yaml/v3"
)

// sealedAt is the time of encryption, which is part of the authenticated data.
const sealedAt = "2026-01-02T03:04:05Z"

// Seal encrypts a YAML document as SOPS does, for an age identity: the values of the fields whose name, or that of a parent,
// matches the pattern.
func Seal(text []byte, pattern, identity string) ([]byte, error) {
	who, err := age.ParseX25519Identity(identity)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s := &sealer{block: block, pattern: regexp.MustCompile(pattern)}
	hash := sha512.New()
	s.mac = func(text string) { hash.Write([]byte(text)) }
	if err := s.walk(document.Content[0], nil); err != nil {
		return nil, err
	}
	mac, err := s.value(fmt.Sprintf("%X", hash.Sum(nil)), "str", sealedAt)
	if err != nil {
		return nil, err
	}
	var enc bytes.Buffer
	armored := armor.NewWriter(&enc)
	w, err := age.Encrypt(armored, who.Recipient())
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(key); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := armored.Close(); err != nil {
		return nil, err
	}
	out, err := yaml.Marshal(&document)
	if err != nil {
		return nil, err
	}
	meta, err := yaml.Marshal(map[string]any{"sops": map[string]any{
		"age":          []any{map[string]any{"recipient": who.Recipient().String(), "enc": enc.String()}},
		"lastmodified": sealedAt, "mac": mac, "encrypted_regex": pattern, "version": "3.10.2",
	}})
	return append(out, meta...), err
}

type sealer struct {
	block   cipher.Block
	pattern *regexp.Regexp
	mac     func(string)
}

func (s *sealer) walk(n *yaml.Node, path []string) error {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := s.walk(n.Content[i+1], append(path[:len(path):len(path)], n.Content[i].Value)); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := s.walk(item, path); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		kind := map[string]string{"!!int": "int", "!!bool": "bool"}[n.Tag]
		text := n.Value
		if kind == "" {
			kind = "str"
		}
		if kind == "bool" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		s.mac(text)
		matches := false
		for _, p := range path {
			matches = matches || s.pattern.MatchString(p)
		}
		if !matches {
			return nil
		}
		sealed, err := s.value(text, kind, strings.Join(path, ":")+":")
		n.Value, n.Tag, n.Style = sealed, "!!str", 0
		return err
	}
	return nil
}

func (s *sealer) value(text, kind, additional string) (string, error) {
	gcm, err := cipher.NewGCMWithNonceSize(s.block, 32)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce)
	out := gcm.Seal(nil, nonce, []byte(text), []byte(additional))
	data, tag := out[:len(out)-gcm.Overhead()], out[len(out)-gcm.Overhead():]
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", encode(data), encode(nonce), encode(tag), kind), nil
}
