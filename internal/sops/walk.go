package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
)

const (
	// maxDepth is the limit of nesting; maxNodes is the limit of values, with aliases counted each time.
	maxDepth = 1000
	maxNodes = 1 << 20

	// maxNonce is the limit of the nonce of a value, in bytes. SOPS writes 32 bytes, older versions 12.
	maxNonce = 1 << 10
)

// macOnlyEncrypted is the beginning of a MAC over the encrypted values only: the SHA-256 of the word sops.
const macOnlyEncrypted = "\x8a\x3f\xd2\xad\x54\xce\x66\x52\x7b\x10\x34\xf3\xd1\x47\xbe\x0b" +
	"\x0b\x97\x5b\x3b\xf4\x4f\x72\xc6\xfd\xad\xec\x81\x76\xf2\x7d\x69"

// walker decrypts the values of a file in their order, and computes the MAC.
type walker struct {
	meta  *metadata
	block cipher.Block
	hash  hash.Hash
	nodes int

	unencrypted, encrypted matcher
}

func newWalker(m *metadata, key []byte) (*walker, error) {
	if m.UnencryptedCommentRegex != "" || m.EncryptedCommentRegex != "" {
		return nil, errors.New("sops: encrypted_comment_regex and unencrypted_comment_regex are not supported")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errors.New("sops: the data key has a wrong length")
	}
	w := &walker{meta: m, block: block, hash: sha512.New()}
	if m.MACOnlyEncrypted {
		w.hash.Write([]byte(macOnlyEncrypted))
	}
	if w.unencrypted, err = newMatcher(m.UnencryptedRegex); err != nil {
		return nil, fmt.Errorf("sops: unencrypted_regex: %w", err)
	}
	if w.encrypted, err = newMatcher(m.EncryptedRegex); err != nil {
		return nil, fmt.Errorf("sops: encrypted_regex: %w", err)
	}
	return w, nil
}

// walk decrypts the values below a node in place. It replaces an alias by a copy: its path, which is authenticated,
// differs.
func (w *walker) walk(n *yaml.Node, path []string) error {
	if w.nodes++; w.nodes > maxNodes {
		return errors.New("sops: too many values")
	}
	if len(path) > maxDepth {
		return fmt.Errorf("sops: nested deeper than %d levels", maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := w.child(n, i+1, append(path[:len(path):len(path)], n.Content[i].Value)); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for i := range n.Content {
			if err := w.child(n, i, path); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		return w.scalar(n, path)
	}
	return nil
}

func (w *walker) child(n *yaml.Node, i int, path []string) error {
	if n.Content[i].Kind == yaml.AliasNode {
		n.Content[i] = clone(n.Content[i].Alias, &w.nodes)
	}
	return w.walk(n.Content[i], path)
}

// clone copies a tree without its anchors. The count limits the expansion of aliases.
func clone(n *yaml.Node, nodes *int) *yaml.Node {
	c := *n
	c.Anchor = ""
	c.Content = nil
	if *nodes++; *nodes > maxNodes {
		return &c
	}
	for _, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			child = child.Alias
		}
		c.Content = append(c.Content, clone(child, nodes))
	}
	return &c
}

func (w *walker) scalar(n *yaml.Node, path []string) error {
	var v any
	if err := n.Decode(&v); err != nil {
		return fmt.Errorf("sops: %s: unreadable value", strings.Join(path, "."))
	}
	if v == nil {
		return nil
	}
	encrypted, err := w.isEncrypted(path)
	if err != nil {
		return err
	}
	if encrypted {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("sops: %s should be encrypted but is not", strings.Join(path, "."))
		}
		got, err := w.decrypt(text, strings.Join(path, ":")+":")
		if err != nil {
			return fmt.Errorf("sops: %s: %w", strings.Join(path, "."), err)
		}
		if v, err = got.put(n); err != nil {
			return fmt.Errorf("sops: %s: %w", strings.Join(path, "."), err)
		}
	}
	if v != nil && (encrypted || !w.meta.MACOnlyEncrypted) {
		text, err := macText(v)
		if err != nil {
			return fmt.Errorf("sops: %s: %w", strings.Join(path, "."), err)
		}
		w.hash.Write([]byte(text))
	}
	return nil
}

// isEncrypted applies the rules in the order of SOPS: a later rule overrides an earlier one.
func (w *walker) isEncrypted(path []string) (bool, error) {
	encrypted := true
	hasSuffix := func(suffix string) bool {
		for _, p := range path {
			if strings.HasSuffix(p, suffix) {
				return true
			}
		}
		return false
	}
	if s := w.meta.UnencryptedSuffix; s != "" && hasSuffix(s) {
		encrypted = false
	}
	if s := w.meta.EncryptedSuffix; s != "" {
		encrypted = hasSuffix(s)
	}
	if w.meta.UnencryptedRegex != "" {
		found, err := w.unencrypted.any(path)
		if err != nil {
			return false, fmt.Errorf("sops: unencrypted_regex: %w", err)
		}
		encrypted = encrypted && !found
	}
	if w.meta.EncryptedRegex != "" {
		found, err := w.encrypted.any(path)
		if err != nil {
			return false, fmt.Errorf("sops: encrypted_regex: %w", err)
		}
		encrypted = found
	}
	return encrypted, nil
}

// matcher matches an expression with each key of a file once.
type matcher struct {
	expression *bound.Pattern
	known      map[string]bool
}

func newMatcher(expression string) (matcher, error) {
	p, err := bound.Compile(expression)
	return matcher{p, map[string]bool{}}, err
}

// any reports whether an element of a path matches.
func (m *matcher) any(path []string) (bool, error) {
	for _, key := range path {
		found, known := m.known[key]
		if !known {
			var err error
			if found, err = m.expression.Match(key); err != nil {
				return false, err
			}
			m.known[key] = found
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

// value is a decrypted value and its type.
type value struct{ text, kind string }

// decrypt decrypts one value. Its errors do not contain the value.
func (w *walker) decrypt(text, additional string) (value, error) {
	if text == "" {
		return value{kind: "str"}, nil
	}
	inner, ok := strings.CutPrefix(text, "ENC[AES256_GCM,")
	inner, closed := strings.CutSuffix(inner, "]")
	if !ok || !closed {
		return value{}, errors.New("not a value that SOPS encrypted")
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(inner, ",") {
		k, v, _ := strings.Cut(field, ":")
		fields[k] = v
	}
	var parts [3][]byte
	for i, name := range []string{"data", "iv", "tag"} {
		b, err := base64.StdEncoding.DecodeString(fields[name])
		if err != nil {
			return value{}, errors.New("not a value that SOPS encrypted")
		}
		parts[i] = b
	}
	if len(parts[1]) == 0 || len(parts[1]) > maxNonce {
		return value{}, errors.New("not a value that SOPS encrypted")
	}
	gcm, err := cipher.NewGCMWithNonceSize(w.block, len(parts[1]))
	if err != nil {
		return value{}, err
	}
	plain, err := gcm.Open(nil, parts[1], append(parts[0], parts[2]...), []byte(additional))
	if err != nil {
		return value{}, errors.New("could not decrypt with AES_GCM: the value was changed or moved")
	}
	return value{string(plain), fields["type"]}, nil
}

// put writes the value into a node and returns it in the type that the MAC uses.
func (v value) put(n *yaml.Node) (any, error) {
	n.Style, n.Tag, n.Value = 0, "!!str", v.text
	switch v.kind {
	case "str", "bytes", "":
		n.Style = yaml.DoubleQuotedStyle // without quotes, kubectl parses yes as a boolean
		return v.text, nil
	case "int":
		i, err := strconv.Atoi(v.text)
		if err != nil {
			return nil, errors.New("not a whole number")
		}
		n.Tag = "!!int"
		return i, nil
	case "float":
		f, err := strconv.ParseFloat(v.text, 64)
		if err != nil {
			return nil, errors.New("not a number")
		}
		n.Tag = "!!float"
		return f, nil
	case "bool":
		b, err := strconv.ParseBool(v.text)
		if err != nil {
			return nil, errors.New("not a boolean")
		}
		n.Tag, n.Value = "!!bool", strconv.FormatBool(b)
		return b, nil
	case "time":
		t, err := time.Parse(time.RFC3339Nano, v.text)
		if err != nil {
			return nil, errors.New("not a time")
		}
		n.Tag = "!!timestamp"
		return t, nil
	case "comment":
		n.Tag, n.Value = "!!null", ""
		return nil, nil
	}
	return nil, errors.New("unknown type of value")
}

// macText returns the form of a value in the MAC.
func macText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case time.Time:
		b, err := v.MarshalText()
		return string(b), err
	}
	return "", errors.New("a value of a type that SOPS does not know")
}
