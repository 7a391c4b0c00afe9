package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/bound"
)

const (
	// recordFormat has to change if older programs would misread a record.
	recordFormat = 1

	// maxRecord is the limit of a record in bytes, well above an object with its status: the API server accepts up to 1.5 MiB.
	maxRecord = 16 << 20
)

// A Record is the state of an object that is kept between runs. The reconciliation of the object creates it at its
// end; Recall returns a copy for the caller. It exists until the object is pruned.
type Record struct {
	FormatVersion int             `json:"formatVersion"` // set by Remember
	Fingerprint   string          `json:"fingerprint,omitempty"`
	Object        json.RawMessage `json:"object,omitempty"` // without credentials: the caller has redacted them
	Status        json.RawMessage `json:"status,omitempty"`
	// Failure is the code of the failure, "" for a success: a status has only a message for it.
	Failure string `json:"failure,omitempty"`
	// BlockedBy is the object KIND/NAMESPACE/NAME that has caused the failure, if it is another object.
	BlockedBy string `json:"blockedBy,omitempty"`
	// Tag is the name that a server gave to the stored artifact.
	Tag string `json:"tag,omitempty"`
	// Cluster is the directory of the object's cluster, relative to its repository; "" without one.
	Cluster string `json:"cluster,omitempty"`
	// Chart is the chart to which a release was resolved.
	Chart ReleasedChart `json:"chart,omitzero"`
	// Values has a digest for each value that a release takes from a ConfigMap, and no value of a Secret.
	Values map[string]any `json:"values,omitzero"`

	text []byte // of the file that Recall has read
}

// ReleasedChart is the chart to which an object without an artifact was resolved: its name, the version that would be
// installed, and the path of its artifact.
type ReleasedChart struct {
	Name     string `json:"name,omitempty"`
	Version  string `json:"version,omitempty"`
	Artifact string `json:"artifact,omitempty"`
}

// A RecordError reports that the record of an object cannot be read. The caller warns and continues without it.
type RecordError struct {
	Path string
	Err  error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("the recorded state %s cannot be used: %v", e.Path, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

var errTooLarge = errors.New("is too large")

func tooLarge(most int) error { return fmt.Errorf("%w: more than %d bytes", errTooLarge, most) }

// Remember replaces the record of the object, whose lock must be held. It does not write the same record again if earlier is the
// record that Recall returned under this lock; earlier may be nil. An object of a kind in Options.Shared needs no lock; [Store.Save]
// writes its record.
func (s *Store) Remember(key Key, r, earlier *Record) error {
	key, err := s.stored(key)
	if err != nil {
		return err
	}
	if s.Shares(key) {
		return s.rememberShared(key, r)
	}
	key, v, err := s.locked(key)
	if err != nil {
		return err
	}
	data, err := encodeRecord(*r)
	if err != nil {
		return fmt.Errorf("record %s: %w", key, err)
	}
	if earlier == nil || !bytes.Equal(earlier.text, data) {
		if err := s.writeFile(v, key.record(), bytes.NewReader(data)); err != nil {
			return fmt.Errorf("record %s: %w", key, err)
		}
	}
	return v.removeFile(key.next())
}

func encodeRecord(r Record) ([]byte, error) {
	r.FormatVersion = recordFormat
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	if b.Len() > maxRecord {
		return nil, tooLarge(maxRecord)
	}
	return b.Bytes(), nil
}

// Recall returns the record of the object. If there is no record, the error matches fs.ErrNotExist; if the record is
// unusable, it is a [*RecordError]. No lock is needed, because a record is replaced atomically.
func (s *Store) Recall(key Key) (*Record, error) {
	key, err := s.stored(key)
	if err != nil {
		return nil, err
	}
	if s.Shares(key) {
		return s.recallShared(key)
	}
	v, err := s.existing()
	if err != nil {
		return nil, err
	}
	data, err := v.readState(key.record(), maxRecord)
	if errors.Is(err, errTooLarge) || errors.Is(err, errIrregular) {
		return nil, &RecordError{key.record(), err}
	}
	if err != nil {
		return nil, err
	}
	return decodeRecord(key.record(), data)
}

func decodeRecord(name string, data []byte) (*Record, error) {
	if err := bound.Check(data); err != nil {
		return nil, &RecordError{name, err}
	}
	r := &Record{text: data}
	err := json.Unmarshal(data, r)
	if err != nil || r.FormatVersion != recordFormat {
		return nil, &RecordError{name, unknownFormat(data, err)}
	}
	return r, nil
}

// unknownFormat returns err, or an error about the format version if that differs: a later format may change other types.
func unknownFormat(data []byte, err error) error {
	var format struct {
		FormatVersion int `json:"formatVersion"`
	}
	if formatErr := json.Unmarshal(data, &format); formatErr == nil && format.FormatVersion != recordFormat {
		return fmt.Errorf("format version %d is not known", format.FormatVersion)
	}
	return err
}

// readState reads one of the store's own files, up to most bytes. Unlike openRegular it distinguishes a missing file
// from a file that is not regular.
func (v *view) readState(name string, most int) ([]byte, error) {
	f, fi, err := v.openSame(name, func(there fs.FileInfo) error {
		switch {
		case !there.Mode().IsRegular():
			return &fs.PathError{Op: "open", Path: name, Err: errIrregular}
		case there.Size() > int64(most):
			return tooLarge(most)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := bytes.NewBuffer(make([]byte, 0, fi.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, int64(most)+1)); err != nil {
		return nil, err
	}
	if data.Len() > most {
		return nil, tooLarge(most)
	}
	return data.Bytes(), nil
}
