package store

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The links that an object's directory can have beside its artifacts. Their paths go into status.url.
const (
	LinkIndex  = "index.yaml"
	LinkLatest = "latest.tar.gz"
)

const (
	stateDir   = ".helmsrc/v1"
	tempPrefix = ".tmp-" // of unfinished artifacts and links
	tempSuffix = ".tmp"  // of unfinished state files

	recordSuffix = ".json"
	lockSuffix   = ".lock"
	nextSuffix   = ".next"

	// maxStateName leaves room for the longest suffix, ".json.tmp", in the 255 bytes of a file name.
	maxStateName = 240
)

// A Key names an object. The kind may be written in any case; a key that the store returns has it in lower case, and
// so does one made by [NewKey]: compare only such.
type Key struct{ Kind, Namespace, Name string }

// NewKey returns a key with the kind in lower case.
func NewKey(kind, namespace, name string) Key {
	return Key{strings.ToLower(kind), namespace, name}
}

func (k Key) String() string { return path.Join(k.Kind, k.Namespace, k.Name) }

// Path returns the path of a file of the object, slash-separated and relative to the artifacts directory.
func (k Key) Path(file string) (string, error) {
	k, err := k.checked()
	if err != nil {
		return "", err
	}
	if !validName(file) {
		return "", notName("file", file)
	}
	return path.Join(k.dir(), file), nil
}

// checked returns the key with its kind in lower case, or an error if a part of it cannot be the name of a directory.
func (k Key) checked() (Key, error) {
	k = NewKey(k.Kind, k.Namespace, k.Name)
	for _, part := range [][2]string{{"kind", k.Kind}, {"namespace", k.Namespace}, {"name", k.Name}} {
		if !validName(part[1]) {
			return Key{}, notName(part[0], part[1])
		}
	}
	return k, nil
}

// Rename stores the files of an object under another name. It must be called before the store is used.
func (s *Store) Rename(key, name Key) {
	if s.renamed == nil {
		s.renamed = map[Key]Key{}
	}
	s.renamed[NewKey(key.Kind, key.Namespace, key.Name)] = name
}

// Stored returns the key under which the files of an object are stored: it differs from key if the object was renamed.
func (s *Store) Stored(key Key) Key {
	if name, ok := s.renamed[NewKey(key.Kind, key.Namespace, key.Name)]; ok {
		return name
	}
	return key
}

// stored returns the checked result of Stored.
func (s *Store) stored(key Key) (Key, error) { return s.Stored(key).checked() }

// dir, state, record, lock and next must only be called on checked keys.
func (k Key) dir() string    { return path.Join(k.Kind, k.Namespace, k.Name) }
func (k Key) record() string { return k.state() + recordSuffix }
func (k Key) lock() string   { return k.state() + lockSuffix }
func (k Key) next() string   { return k.state() + nextSuffix }

// state returns the path of the state files without their suffix. The name of an object may be almost as long as a
// file name, which leaves no room for a suffix: a long name is split into a directory and a file.
func (k Key) state() string {
	dir := path.Join(stateDir, k.Kind, k.Namespace)
	if len(k.Name) > maxStateName {
		return dir + "/" + k.Name[:maxStateName] + "/" + k.Name[maxStateName:]
	}
	return dir + "/" + k.Name
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// splitPath returns the key of an artifact's path. The path comes from a record, which may have been edited: the
// error for a path that this store cannot have written matches fs.ErrNotExist, so that the artifact is fetched again.
func splitPath(artifact string) (Key, error) {
	parts := strings.Split(artifact, "/")
	if len(parts) == 4 {
		k, err := Key{parts[0], parts[1], parts[2]}.checked()
		if err == nil && k.Kind == parts[0] && validName(parts[3]) {
			return k, nil
		}
	}
	return Key{}, fmt.Errorf("%q is not the path of an artifact: %w", artifact, fs.ErrNotExist)
}

func notName(what, value string) error {
	return fmt.Errorf("%s %q cannot be used as a file name in the artifacts directory", what, value)
}

// validName reports whether s can be one element of a path. Names come from manifests, indexes and registries. A
// leading dot is reserved for the store's own files.
func validName(s string) bool {
	if s == "" || s[0] == '.' || !utf8.ValidString(s) || strings.ContainsAny(s, `/\`) {
		return false
	}
	// A control character could rewrite the terminal of a user who lists the directory.
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }) {
		return false
	}
	// Windows reserves more names: devices, drives, alternate streams.
	return filepath.IsLocal(s)
}

// isArtifact reports whether the store can have written an artifact of that name. Collect and Prune remove only such
// files, and Commit stores only such files.
func isArtifact(file string) bool {
	if !validName(file) || isLink(file) {
		return false
	}
	return strings.HasSuffix(file, ".tgz") || strings.HasSuffix(file, ".tar.gz") ||
		strings.HasPrefix(file, "index-") && strings.HasSuffix(file, ".yaml")
}

func isLink(file string) bool { return file == LinkIndex || file == LinkLatest }
