package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/helmsrc/helmsrc/internal/digest"
)

var (
	errIrregular = errors.New("is not a regular file")
	errNoDigest  = errors.New("artifact has no digest")
)

// An AlteredError reports that a stored artifact cannot be trusted: its bytes have changed, or its digest is missing
// or malformed.
type AlteredError struct{ Err error }

func (e *AlteredError) Error() string { return e.Err.Error() }
func (e *AlteredError) Unwrap() error { return e.Err }

// Verify checks that the artifact exists and has the digest want. The error matches fs.ErrNotExist if the artifact is
// missing, is not a regular file, or was replaced by an interrupted run. It is an [*AlteredError] if the artifact has
// changed.
func (s *Store) Verify(artifact, want string) error {
	f, err := s.OpenArtifact(artifact)
	if err != nil {
		return err
	}
	defer f.Close()
	if want == "" {
		return &AlteredError{errNoDigest}
	}
	d, err := digest.Parse(want)
	if err != nil {
		return &AlteredError{malformedDigest(want, err)}
	}
	got, err := digestOf(f, d)
	if err != nil {
		return err
	}
	if got == d {
		s.noteBytes(artifact, want, f.Stat)
		return nil
	}
	if s.replaced(artifact) != "" {
		return fmt.Errorf("%s was replaced by a run that did not finish: %w", artifact, fs.ErrNotExist)
	}
	return &AlteredError{fmt.Errorf("computed digest doesn't match '%s'", d)}
}

func malformedDigest(value string, err error) error {
	if malformed, ok := errors.AsType[*digest.MalformedError](err); ok {
		return fmt.Errorf("failed to parse artifact digest '%s': %s", value, malformed.Reason)
	}
	return fmt.Errorf("failed to parse artifact digest '%s': %w", value, err)
}

// OpenArtifact opens a stored artifact for reading, without checking its digest.
func (s *Store) OpenArtifact(artifact string) (*os.File, error) {
	if _, err := splitPath(artifact); err != nil {
		return nil, err
	}
	v, err := s.existing()
	if err != nil {
		return nil, err
	}
	return v.openRegular(artifact)
}

// openRegular opens a regular file. Every other file, even a link, counts as missing, as in source-controller.
func (v *view) openRegular(name string) (*os.File, error) {
	f, _, err := v.openSame(name, func(there fs.FileInfo) error {
		if !there.Mode().IsRegular() {
			return irregular(name)
		}
		return nil
	})
	return f, err
}

// openSame opens a file that look accepts. If the opened file is not the one that look has seen, it was replaced, or
// exchanged for a link: then openSame tries again.
func (v *view) openSame(name string, look func(fs.FileInfo) error) (*os.File, fs.FileInfo, error) {
	for range maxLockRaces {
		there, err := v.Lstat(name)
		if err == nil {
			err = look(there)
		}
		if err != nil {
			return nil, nil, err
		}
		f, err := v.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			return nil, nil, err
		}
		opened, err := f.Stat()
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		if os.SameFile(there, opened) {
			return f, opened, nil
		}
		_ = f.Close() // nothing was read
	}
	return nil, nil, irregular(name)
}

func irregular(name string) error {
	return fmt.Errorf("%s %w: %w", name, errIrregular, fs.ErrNotExist)
}

// Remove removes an artifact of an object whose lock is held. A missing artifact is not an error.
func (s *Store) Remove(artifact string) error {
	key, err := splitPath(artifact)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_, v, err := s.locked(key)
	if err != nil {
		return err
	}
	fi, err := v.Lstat(artifact)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return &fs.PathError{Op: "remove", Path: artifact, Err: errIrregular}
	}
	return v.removeFile(artifact)
}

// sum computes the artifact's digest with the algorithm of like.
func (s *Store) sum(artifact string, like digest.Digest) (digest.Digest, error) {
	f, err := s.OpenArtifact(artifact)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digestOf(f, like)
}

func digestOf(f *os.File, like digest.Digest) (digest.Digest, error) {
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	w := digest.NewWriter(like.Algorithm())
	_, err = io.Copy(w, io.LimitReader(f, fi.Size()+1)) // the limit makes the buffer of Copy no larger than the file
	return w.Digest(), err
}

// replaced returns the digest of an artifact that is an announced replacement, or that an announced replacement was about to replace
// a second time. It returns "" for any other artifact.
func (s *Store) replaced(artifact string) digest.Digest {
	key, err := splitPath(artifact)
	if err != nil {
		return ""
	}
	v, err := s.existing()
	if err != nil {
		return ""
	}
	data, err := v.readState(key.next(), maxRecord)
	if err != nil {
		return ""
	}
	var next replacement
	if json.Unmarshal(data, &next) != nil || next.Path != artifact {
		return ""
	}
	for _, text := range []string{next.Digest, next.Before} {
		want, err := digest.Parse(text)
		if err != nil {
			continue
		}
		if got, err := s.sum(artifact, want); err == nil && got == want {
			return want
		}
	}
	return ""
}
