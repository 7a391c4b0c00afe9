package render

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/sops"
)

const (
	decryptMark = manifest.KustomizeGroup + "/decrypt"

	maxKeyFile = 1 << 20
)

// ambientKeys returns the keys of the user, as the sops program finds them, and armoured PGP keys. Each error is about a named
// file that cannot be used; it does not quote the file.
func ambientKeys(ctx context.Context, getenv func(string) string) (*sops.Keys, []error) {
	keys := &sops.Keys{}
	var errs []error
	add := func(name string, text []byte, err error, parse func([]byte) error) {
		if err == nil {
			err = parse(text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if text := getenv("SOPS_AGE_KEY"); text != "" {
		add("SOPS_AGE_KEY", []byte(text), nil, keys.AddAge)
	}
	if path := getenv("SOPS_AGE_KEY_FILE"); path != "" {
		text, err := readKeyFile(ctx, path)
		add("SOPS_AGE_KEY_FILE", text, err, keys.AddAge)
	}
	if path := getenv("SOPS_PGP_KEY_FILE"); path != "" {
		text, err := readKeyFile(ctx, path)
		add("SOPS_PGP_KEY_FILE", text, err, keys.AddPGP)
	}
	if path := defaultKeyFile(getenv); path != "" {
		if text, err := readKeyFile(ctx, path); err == nil {
			add(path, text, nil, keys.AddAge)
		}
	}
	return keys, errs
}

func readKeyFile(ctx context.Context, path string) ([]byte, error) {
	text, err := file.Read(ctx, path, maxKeyFile)
	return text, plainPathError(err)
}

func defaultKeyFile(getenv func(string) string) string {
	dir := getenv("XDG_CONFIG_HOME")
	switch {
	case dir != "":
	case runtime.GOOS == "windows":
		dir = getenv("AppData")
	case getenv("HOME") == "":
	case runtime.GOOS == "darwin":
		dir = filepath.Join(getenv("HOME"), "Library", "Application Support")
	default:
		dir = filepath.Join(getenv("HOME"), ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "sops", "age", "keys.txt")
}

// addSecret adds the keys in a Secret that spec.decryption.secretRef names, except the keys of services.
func addSecret(keys *sops.Keys, name string, data map[string][]byte) error {
	for _, k := range slices.Sorted(maps.Keys(data)) {
		var err error
		switch filepath.Ext(k) {
		case ".agekey":
			err = keys.AddAge(data[k])
		case ".asc":
			err = keys.AddPGP(data[k])
		}
		if err != nil {
			return fmt.Errorf("failed to import '%s' data from sops decryption Secret '%s': %w", k, name, err)
		}
	}
	return nil
}

type decrypter struct {
	keys *sops.Keys
	hint string // why keys may be missing
}

// object decrypts a built object, and the values of a Secret that are encrypted one by one. It returns the decrypted object,
// which must not be printed.
func (d *decrypter) object(content map[string]any) (map[string]any, error) {
	if marked(content, decryptMark, disabled) {
		return content, nil
	}
	if sops.Encrypted(content) {
		got, err := d.keys.Object(content)
		if err != nil {
			return nil, d.failure(err)
		}
		content = got
	}
	return d.values(content)
}

// values decrypts the values of a Secret that SOPS encrypted as text.
func (d *decrypter) values(content map[string]any) (map[string]any, error) {
	if _, kind, _, _ := manifest.Identify(content); kind != "Secret" {
		return content, nil
	}
	data, _ := content["data"].(map[string]any)
	if data["sops_mac"] != nil {
		return nil, d.failure(&sops.KeyError{Recipients: envRecipients(data)})
	}
	var changed map[string]any
	for _, k := range slices.Sorted(maps.Keys(data)) {
		encoded, ok := data[k].(string)
		if !ok {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue // reported when the Secret is used
		}
		in, found := sops.Detect(text)
		if !found {
			continue
		}
		plain, err := d.keys.Text(text, in, sops.FormatOf(k))
		if err != nil {
			return nil, d.failure(fmt.Errorf("failed to decrypt and format data[%s]: %w", k, err))
		}
		if changed == nil {
			changed = copyMap(data)
		}
		changed[k] = base64.StdEncoding.EncodeToString(plain)
	}
	if changed == nil {
		return content, nil
	}
	content = copyMap(content)
	content["data"] = changed
	return content, nil
}

// envRecipients reads the recipients of an encrypted dotenv file that a generator took for values, because it could not
// be decrypted.
func envRecipients(data map[string]any) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[k].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		switch {
		case err != nil:
		case strings.HasPrefix(k, "sops_age__") && strings.HasSuffix(k, "recipient"):
			list = append(list, string(plain))
		case strings.HasPrefix(k, "sops_pgp__") && strings.HasSuffix(k, "fp"):
			list = append(list, "PGP key "+string(plain))
		}
	}
	return list
}

// failure turns the error of a missing key into that of a sealed object.
func (d *decrypter) failure(err error) error {
	if missing, ok := errors.AsType[*sops.KeyError](err); ok {
		hint := missing.Hint()
		if d.hint != "" {
			hint = d.hint + "; " + hint
		}
		return &manifest.SealedError{Reason: hint}
	}
	return err
}

// raw decrypts an object as its file contains it, and checks the MAC: nothing has changed the object since.
func (d *decrypter) raw(o *manifest.Raw) (map[string]any, error) {
	if !sops.Encrypted(o.Value) || o.Item {
		return d.object(o.Value)
	}
	content, err := d.document(o.Document, 0)
	var mac interface{ Integrity() bool }
	if err != nil && errors.As(err, &mac) && len(o.Whole) > len(o.Document) {
		// One MAC is for all documents of a file.
		content, err = d.document(o.Whole, o.Index)
	}
	if err != nil {
		return nil, d.failure(err)
	}
	return d.values(content)
}

func (d *decrypter) document(text []byte, index int) (map[string]any, error) {
	docs, err := d.keys.Documents(text)
	if err != nil {
		return nil, err
	}
	if index >= len(docs) {
		return nil, errors.New("sops: the document is not in the file any more")
	}
	return docs[index], nil
}

// replacements decrypts the files that a build needs decrypted: those of Secret generators, and patches. For a patch it also
// returns the text that may be shown, because a patch can put encrypted values into any object.
func (d *decrypter) replacements(c *closure, display func(string) string) (replace, shown map[string][]byte, err error) {
	replace, shown = map[string][]byte{}, map[string][]byte{}
	for _, dir := range c.dirs {
		for _, f := range dir.sealed {
			text, err := dir.repo.read(f.path)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", display(f.path), err)
			}
			in, found := sops.Detect(text)
			if !found {
				continue
			}
			out := sops.FormatOf(f.shape)
			if f.env && out == sops.Binary {
				out = sops.Dotenv
			}
			plain, err := d.keys.Text(text, in, out)
			if _, ok := errors.AsType[*sops.KeyError](err); ok {
				continue // build without the values of this file
			}
			if err != nil {
				return nil, nil, fmt.Errorf("error decrypting sources: %s: %w", display(f.path), err)
			}
			replace[f.path] = plain
			if f.patch {
				shown[f.path] = shownPatch(text, plain)
			}
		}
	}
	return replace, shown, nil
}

func shownPatch(before, after []byte) []byte {
	var b, a any
	if sigsyaml.Unmarshal(before, &b) != nil || sigsyaml.Unmarshal(after, &a) != nil {
		return []byte(conceal.Hidden) // not a patch: all that it changes is hidden
	}
	text, err := sigsyaml.Marshal(unsealed(b, a, a))
	if err != nil {
		return []byte(conceal.Hidden)
	}
	return text
}

// withoutSecrets returns a decrypted object without its encrypted values. The arguments are the object before and after
// decryption, and the object as it would be shown without encryption.
func withoutSecrets(before, after, shown map[string]any) map[string]any {
	if !sops.Encrypted(before) {
		return shown // a Secret whose values were encrypted is never printed
	}
	m, _ := unsealed(before, after, shown).(map[string]any)
	return m
}

func unsealed(before, after, shown any) any {
	return rebuilt(after, []any{before, shown}, func(v any, at []any) (any, bool) {
		if text, ok := at[0].(string); ok && strings.HasPrefix(text, "ENC[") {
			return conceal.Hidden, true
		}
		return at[1], isLeaf(v)
	})
}
