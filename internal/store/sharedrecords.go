package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/bound"
)

const (
	sharedRecordsFile = stateDir + "/book"

	// MaxSharedRecords (bytes), maxSharedObjects and maxSharedValues allow some fifty thousand objects, and keep a
	// run that reads all of them below 512 MiB: it needs about four times the text of its records.
	MaxSharedRecords = 128 << 20
	maxSharedObjects = 1 << 17
	maxSharedValues  = 8 << 20
)

// sharedRecords are the records of the objects without artifacts, all in one file, because the creation of files is
// most of the cost of an object on many file systems. No other file of the directory depends on them, so that only a
// write needs a lock. Each line is KIND/NAMESPACE/NAME, a tab and a record.
type sharedRecords struct {
	mu      sync.Mutex
	open    bool        // the file was read into records
	records recordTexts // the records at the time the file was read
	changed recordTexts // the records that this process has changed since then
}

// recordTexts are encoded records by their objects.
type recordTexts map[Key][]byte

// Shares reports whether the record of the key's object is in the shared file, which needs no lock.
func (s *Store) Shares(key Key) bool {
	return slices.ContainsFunc(s.options.Shared, func(kind string) bool { return strings.EqualFold(kind, key.Kind) })
}

// Load reads the records of objects of the kinds in Options.Shared. After an error the store has no such record; the
// error is returned once, by Load or, without this call, to the first caller that needs a record.
func (s *Store) Load() error {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.openShared()
}

// Unload frees the memory of [Store.Load]. The next call that needs the file reads it again.
func (s *Store) Unload() {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	s.shared.open, s.shared.records = false, nil
}

// recallShared returns the record of an object.
func (s *Store) recallShared(key Key) (*Record, error) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if err := s.openShared(); err != nil {
		return nil, err
	}
	data, ok := s.shared.changed[key]
	if !ok {
		data, ok = s.shared.records[key]
	}
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return decodeRecord(sharedRecordsFile, data)
}

// rememberShared keeps a record until [Store.Save] writes it.
func (s *Store) rememberShared(key Key, r *Record) error {
	data, err := encodeRecord(*r)
	if err != nil {
		return fmt.Errorf("record %s: %w", key, err)
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if bytes.Equal(s.shared.records[key], data) {
		delete(s.shared.changed, key)
		return nil
	}
	if s.shared.changed == nil {
		s.shared.changed = recordTexts{}
	}
	s.shared.changed[key] = data
	return nil
}

// Save writes the records of objects of the kinds in Options.Shared that have changed since the last call. It keeps
// the records of other objects that other processes have written in the meantime. After Save the names of all stored
// files are durable.
func (s *Store) Save(ctx context.Context) error {
	err := s.saveShared(ctx)
	if s.unsynced.Swap(false) {
		err = errors.Join(err, s.sync())
	}
	return err
}

// sync makes the names in the directory durable. Once per run is enough: a later run notices files lost in a crash of
// the machine when it compares digests, and fetches them again.
func (s *Store) sync() error {
	v, err := s.existing()
	if err != nil {
		return err
	}
	return syncDir(v.root, stateDir)
}

func (s *Store) saveShared(ctx context.Context) error {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	if len(s.shared.changed) == 0 {
		return nil
	}
	err := s.rewrite(ctx, func(records recordTexts) { maps.Copy(records, s.shared.changed) })
	if err != nil {
		return fmt.Errorf("the state of objects cannot be recorded: %w", err)
	}
	s.shared.changed = nil
	return nil
}

// rewrite changes the file; s.shared.mu must be held.
func (s *Store) rewrite(ctx context.Context, change func(recordTexts)) error {
	return s.exclusive(ctx, sharedRecordsFile, func(v *view) error {
		records, err := v.readShared()
		var unusable *RecordError
		if err != nil && !errors.As(err, &unusable) { // an unusable file is replaced
			return err
		}
		change(records)
		if err := records.check(); err != nil {
			return err
		}
		if err := s.writeFile(v, sharedRecordsFile, records); err != nil {
			return err
		}
		s.shared.open, s.shared.records = true, records
		return nil
	})
}

// exclusive calls change while no other process changes a file of the whole directory. It creates the directory.
func (s *Store) exclusive(ctx context.Context, file string, change func(*view) error) error {
	v, err := s.created()
	if err != nil {
		return err
	}
	lock, err := waitForLock(ctx, v, sharedRecordsFile+lockSuffix)
	if err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	defer lock.Close()
	return change(v)
}

// openShared reads the file, once; s.shared.mu must be held.
func (s *Store) openShared() error {
	if s.shared.open {
		return nil
	}
	s.shared.open = true
	v, err := s.existing()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s.shared.records, err = v.readShared()
	return err
}

// sharedKeys lists the objects in the shared file.
func (s *Store) sharedKeys() ([]Key, error) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	err := s.openShared()
	return slices.Collect(maps.Keys(s.shared.records)), err
}

// pruneShared removes the records for which keep returns false from the shared file.
func (s *Store) pruneShared(ctx context.Context, keep func(Key) bool) (pruned []Key, err error) {
	keys, err := s.sharedKeys()
	if err != nil || !slices.ContainsFunc(keys, func(k Key) bool { return !keep(k) }) {
		return nil, err
	}
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	err = s.rewrite(ctx, func(records recordTexts) {
		for k := range records {
			if !keep(k) {
				pruned = append(pruned, k)
				delete(records, k)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return pruned, nil
}

// readShared returns the records of the file, or no records if there is no file or with a [*RecordError].
func (v *view) readShared() (recordTexts, error) {
	records := recordTexts{}
	data, err := v.readState(sharedRecordsFile, MaxSharedRecords)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return records, nil
	case errors.Is(err, errTooLarge), errors.Is(err, errIrregular):
		return records, &RecordError{sharedRecordsFile, err}
	case err != nil:
		return records, err
	}
	if err := checkShared(len(data), bytes.Count(data, []byte("\n")), bound.Values(data)); err != nil {
		return records, &RecordError{sharedRecordsFile, err}
	}
	for line := range bytes.Lines(data) {
		name, record, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		key, ok := parseKey(string(name))
		if !ok {
			return recordTexts{}, &RecordError{sharedRecordsFile, errors.New("a line without an object")}
		}
		records[key] = record
	}
	return records, nil
}

// lines yields the lines of the file. Each line is valid until the next one.
func (b recordTexts) lines() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var line []byte
		for _, key := range slices.SortedFunc(maps.Keys(b), compareKeys) {
			line = append(append(append(line[:0], key.String()...), '\t'), b[key]...)
			if line = append(line, '\n'); !yield(line) {
				return
			}
		}
	}
}

// check is [checkShared] for the file that WriteTo writes.
func (b recordTexts) check() error {
	bytes, values := 0, 0
	for line := range b.lines() {
		bytes, values = bytes+len(line), values+bound.Values(line)
	}
	return checkShared(bytes, len(b), values)
}

// WriteTo writes the file. It does not build the whole file in memory beside the records.
func (b recordTexts) WriteTo(w io.Writer) (n int64, err error) {
	out := bufio.NewWriterSize(w, 1<<20)
	for line := range b.lines() {
		written, err := out.Write(line)
		if n += int64(written); err != nil {
			return n, err
		}
	}
	return n, out.Flush()
}

// checkShared returns an error if the file has more records than a run may keep in memory.
func checkShared(bytes, objects, values int) error {
	switch {
	case bytes > MaxSharedRecords:
		return tooLarge(MaxSharedRecords)
	case objects > maxSharedObjects:
		return fmt.Errorf("%w: more than %d objects", errTooLarge, maxSharedObjects)
	case values > maxSharedValues:
		return fmt.Errorf("%w: more than %d values", errTooLarge, maxSharedValues)
	}
	return nil
}

// size returns the size of the records in the file, in bytes.
func (b recordTexts) size() int {
	n := 0
	for key, record := range b {
		n += len(key.String()) + len(record) + len("\t\n")
	}
	return n
}

// SharedSize returns the number of bytes that [Store.Load] has read.
func (s *Store) SharedSize() int {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	return s.shared.records.size()
}

// parseKey parses the result of Key.String: no part of it has a slash.
func parseKey(text string) (Key, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Key{}, false
	}
	key, err := Key{parts[0], parts[1], parts[2]}.checked()
	return key, err == nil && key.String() == text
}
