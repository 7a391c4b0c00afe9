// Package sops decrypts files and objects that are encrypted with SOPS, with the given age and PGP keys. It does not search
// for keys, uses no key service, and does not encrypt.
package sops

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// MaxSize is the limit of one file or value, in bytes, as in kustomize-controller.
const MaxSize = 5 << 20

// Format is the format of an encrypted file.
type Format string

// The formats of SOPS. INI is recognised, but not supported.
const (
	Binary Format = "binary"
	Dotenv Format = "dotenv"
	INI    Format = "ini"
	JSON   Format = "json"
	YAML   Format = "yaml"
)

// FormatOf returns the format that a file name implies.
func FormatOf(name string) Format {
	switch ext := path.Ext(name); {
	case strings.HasSuffix(name, ".dockerconfigjson"):
		return JSON
	case ext == ".yaml", ext == ".yml":
		return YAML
	case ext == ".json":
		return JSON
	case ext == ".env":
		return Dotenv
	case ext == ".ini":
		return INI
	}
	return Binary
}

// Detect returns the format of encrypted text, by the metadata that SOPS writes in each format, and whether the text is
// encrypted.
func Detect(data []byte) (Format, bool) {
	for _, m := range []struct {
		format Format
		marker string
	}{{Dotenv, "sops_mac=ENC["}, {INI, "[sops]"}, {JSON, `"mac": "ENC[`}, {JSON, `"mac":"ENC[`}, {YAML, "mac: ENC["}, {YAML, `mac: "ENC[`}, {YAML, "mac: 'ENC["}} {
		if bytes.Contains(data, []byte(m.marker)) {
			return m.format, true
		}
	}
	return "", false
}

// Encrypted reports whether an object is encrypted, by its metadata.
func Encrypted(content map[string]any) bool {
	meta, ok := content["sops"].(map[string]any)
	return ok && meta["mac"] != nil && meta["mac"] != ""
}

// notAuthentic returns an error for a text that was changed after it was encrypted.
func notAuthentic(why string) error {
	return &finding.Problem{Class: finding.Untrusted, Text: "sops: " + why, Advice: "edit encrypted files with sops, not by hand"}
}

// Text decrypts a file and checks its MAC, so that changes since the encryption are an error. The result is in the
// format out.
func (k *Keys) Text(data []byte, in, out Format) ([]byte, error) {
	trees, err := k.trees(data, in, true)
	if err != nil {
		return nil, err
	}
	return emit(trees, out)
}

// Documents decrypts a YAML or JSON file of one or more documents and checks its MAC, which covers all of them. The
// result has an element for each document.
func (k *Keys) Documents(data []byte) ([]map[string]any, error) {
	trees, err := k.trees(data, YAML, true)
	if err != nil {
		return nil, err
	}
	var list []map[string]any
	for _, t := range trees {
		m, err := t.object()
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, nil
}

// Object decrypts an object in the types of JSON. It does not check the MAC: a kustomization that built the object may
// have changed values that are not encrypted.
func (k *Keys) Object(content map[string]any) (map[string]any, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	trees, err := k.trees(text, JSON, false)
	if err != nil {
		return nil, err
	}
	return trees[0].object()
}

// trees decrypts a text of limited size.
func (k *Keys) trees(text []byte, f Format, mac bool) ([]*tree, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("cannot decrypt file with size (%d bytes) exceeding limit (%d)", len(text), MaxSize)
	}
	trees, err := parse(text, f)
	if err != nil {
		return nil, err
	}
	return trees, k.open(trees, mac)
}

// open decrypts all values of the trees, which are the documents of one file.
func (k *Keys) open(trees []*tree, mac bool) error {
	at := slices.IndexFunc(trees, func(t *tree) bool { return t.meta != nil })
	if at < 0 {
		return errors.New("sops metadata not found")
	}
	main := trees[at]
	key, err := k.dataKey(main.meta)
	if err != nil {
		return err
	}
	w, err := newWalker(main.meta, key)
	if err != nil {
		return err
	}
	for _, t := range trees {
		if err := w.walk(t.root, nil); err != nil {
			return err
		}
	}
	if !mac {
		return nil
	}
	return w.check()
}

// check compares the MAC of the decrypted values with that of the metadata.
func (w *walker) check() error {
	if w.meta.MAC == "" {
		return notAuthentic("the file has no MAC: changes cannot be detected")
	}
	want, err := w.decrypt(w.meta.MAC, w.meta.LastModified)
	if err != nil {
		return notAuthentic("MAC mismatch: the file was changed after it was encrypted")
	}
	got := fmt.Sprintf("%X", w.hash.Sum(nil))
	if subtle.ConstantTimeCompare([]byte(want.text), []byte(got)) != 1 {
		return notAuthentic("MAC mismatch: the file was changed after it was encrypted")
	}
	return nil
}

// tree is a document without its metadata.
type tree struct {
	root *yaml.Node // a mapping
	meta *metadata
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
