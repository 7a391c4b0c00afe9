package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Keys returns the objects with a record or an artifact, in order. A directory that does not exist has no objects.
// With an error it returns the objects that were found.
func (s *Store) Keys() ([]Key, error) {
	keys, err := s.sharedKeys()
	own, ownErr := s.ownKeys()
	keys = append(keys, own...)
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys), errors.Join(err, ownErr)
}

// ownKeys returns the keys of the objects with their own files.
func (s *Store) ownKeys() (keys []Key, err error) {
	known, err := s.known()
	if err != nil || known == nil {
		return nil, err
	}
	v, err := s.existing()
	if err != nil {
		return nil, err
	}
	for _, k := range known {
		present, err := isPresent(v, k)
		if err != nil {
			return nil, err
		}
		if present {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// Prune removes the artifacts and the record of every object for which keep returns false, and returns these objects
// in order. It locks each object first, so that a run that uses it can finish; ctx limits the wait. An object that
// cannot be removed does not prevent the removal of the next ones.
func (s *Store) Prune(ctx context.Context, keep func(Key) bool) ([]Key, error) {
	known, err := s.known()
	if err != nil {
		return nil, err
	}
	var pruned []Key
	var errs []error
	for _, k := range known {
		// The remaining objects are not pruned, and the caller has to know.
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
			break
		}
		if keep(k) {
			continue
		}
		present, err := s.prune(ctx, k)
		if err != nil {
			errs = append(errs, err)
		} else if present {
			pruned = append(pruned, k)
		}
	}
	shared, err := s.pruneShared(ctx, keep)
	pruned = append(pruned, shared...)
	slices.SortFunc(pruned, compareKeys)
	return slices.Compact(pruned), errors.Join(append(errs, err)...)
}

// prune removes an object, and reports whether it had more files than a lock.
func (s *Store) prune(ctx context.Context, key Key) (present bool, err error) {
	unlock, err := s.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	_, v, err := s.locked(key)
	if err != nil {
		return false, err
	}
	if present, err = isPresent(v, key); err != nil {
		return false, err
	}
	if err := removeObject(v, key); err != nil {
		return false, err
	}
	// The file is removed while the lock is held, so that no process can lock a file that is about to vanish; see
	// isCurrent. An empty lock that cannot be removed is not worth reporting.
	_ = v.Remove(key.lock())
	v.forget() // Windows does not remove an open directory
	removeEmpty(v.root, key.dir(), ".")
	removeEmpty(v.root, path.Dir(key.lock()), stateDir)
	return present, nil
}

// removeObject removes the record first: if the process is killed in between, no record refers to a removed artifact.
func removeObject(v *view, key Key) error {
	for _, name := range []string{key.record(), key.next()} {
		if err := v.removeFile(name); err != nil {
			return err
		}
	}
	entries, err := v.ReadDir(key.dir())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isOurs(e) {
			continue
		}
		if err := v.removeFile(path.Join(key.dir(), e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// removeEmpty removes dir and its parents below top as long as they are empty.
func removeEmpty(root *os.Root, dir, top string) {
	for ; dir != top; dir = path.Dir(dir) {
		if fi, err := root.Lstat(dir); err != nil || !fi.IsDir() || root.Remove(dir) != nil {
			return
		}
	}
}

func isOurs(e fs.DirEntry) bool {
	if isLink(e.Name()) {
		return !e.IsDir()
	}
	return isStored(e)
}

// isPresent reports whether the object has more files than a lock.
func isPresent(v *view, key Key) (bool, error) {
	_, err := v.Lstat(key.record())
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	files, err := v.artifacts(key)
	return len(files) > 0, err
}

// known returns, in order, every object with a file. The lock files show objects without a record, since every write
// needs a lock.
func (s *Store) known() ([]Key, error) {
	v, err := s.existing()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.forget() // other processes may have created and removed directories
	kinds, err := v.subdirs(stateDir)
	if err != nil {
		return nil, err
	}
	var keys []Key
	for _, kind := range kinds {
		if keys, err = v.appendKeys(keys, stateDir, kind, v.stateNames); err != nil {
			return nil, err
		}
	}
	for _, kind := range s.options.Kinds {
		if kind = strings.ToLower(kind); !validName(kind) {
			return nil, notName("kind", kind)
		}
		if keys, err = v.appendKeys(keys, ".", kind, v.subdirs); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys), nil
}

// appendKeys adds the objects of a kind that list finds in the directory of each namespace.
func (v *view) appendKeys(keys []Key, dir, kind string, list func(dir string) ([]string, error)) ([]Key, error) {
	namespaces, err := v.subdirs(path.Join(dir, kind))
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		names, err := list(path.Join(dir, kind, namespace))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			k := Key{kind, namespace, name}
			if checked, err := k.checked(); err == nil && checked == k {
				keys = append(keys, k)
			}
		}
	}
	return keys, nil
}

func (v *view) stateNames(dir string) (names []string, err error) {
	entries, err := v.ReadDir(dir)
	for _, e := range entries {
		if name, ok := stateName(e.Name()); ok && !e.IsDir() {
			names = append(names, name)
		}
		if len(e.Name()) != maxStateName || !e.IsDir() {
			continue
		}
		rest, err := v.stateNames(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		for _, r := range rest {
			names = append(names, e.Name()+r)
		}
	}
	return names, err
}

func stateName(file string) (string, bool) {
	if name, ok := strings.CutSuffix(file, recordSuffix); ok {
		return name, true
	}
	return strings.CutSuffix(file, lockSuffix)
}

func (v *view) subdirs(dir string) (names []string, err error) {
	entries, err := v.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}
