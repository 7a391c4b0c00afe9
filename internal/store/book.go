package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	bookName = stateDir + "/book"

	// maxBook has room for a hundred thousand objects.
	maxBook = 256 << 20
)

// A book is what is remembered of objects that have no artifact: of all of them in one file, because to make files is
// most of what an object costs on many file systems. Nothing in the directory depends on it, so that no lock is needed
// but to write it. Each line is KIND/NAMESPACE/NAME, a tab and a record.
type book struct {
	mu      sync.Mutex
	open    bool           // records are those of the file
	records map[Key][]byte // as they were when the file was read
	changed map[Key][]byte // since then, by this process
}

// isShared reports whether the key's object has its record in the book.
func (s *Store) isShared(key Key) bool {
	return slices.ContainsFunc(s.options.Shared, func(kind string) bool { return strings.EqualFold(kind, key.Kind) })
}

// Load reads what is remembered of objects of the kinds in Options.Shared. An error means that nothing is; it is
// returned once, here or, without this call, to the first who asks for one of them.
func (s *Store) Load() error {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return s.openBook()
}

// recallShared returns the record of an object.
func (s *Store) recallShared(key Key) (*Record, error) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	if err := s.openBook(); err != nil {
		return nil, err
	}
	data, ok := s.book.changed[key]
	if !ok {
		data, ok = s.book.records[key]
	}
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return decodeRecord(bookName, data)
}

// rememberShared keeps a record until [Store.Save] writes it.
func (s *Store) rememberShared(key Key, r *Record) error {
	data, err := encodeRecord(*r)
	if err != nil {
		return fmt.Errorf("remember %s: %w", key, err)
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	if bytes.Equal(s.book.records[key], data) {
		delete(s.book.changed, key)
		return nil
	}
	if s.book.changed == nil {
		s.book.changed = map[Key][]byte{}
	}
	s.book.changed[key] = data
	return nil
}

// Save writes what was recorded of objects of the kinds in Options.Shared since the last call, if it is something new.
// Other processes may have written in the meantime: what they remembered of other objects stays.
func (s *Store) Save(ctx context.Context) error {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	if len(s.book.changed) == 0 {
		return nil
	}
	err := s.rewrite(ctx, func(records map[Key][]byte) { maps.Copy(records, s.book.changed) })
	if err != nil {
		return fmt.Errorf("the state of %d objects cannot be recorded: %w", len(s.book.changed), err)
	}
	s.book.changed = nil
	return nil
}

// rewrite changes the file; s.book.mu must be held.
func (s *Store) rewrite(ctx context.Context, change func(map[Key][]byte)) error {
	root, err := s.created()
	if err != nil {
		return err
	}
	v := newView(root)
	defer v.close()
	lock, err := s.waitForLock(ctx, v, bookName+lockSuffix)
	if err != nil {
		return fmt.Errorf("lock %s: %w", bookName, err)
	}
	defer lock.Close()
	records, err := v.readBook()
	var unusable *RecordError
	if err != nil && !errors.As(err, &unusable) { // that one is replaced
		return err
	}
	change(records)
	data, err := encodeBook(records)
	if err != nil {
		return err
	}
	if err := s.writeFile(v, bookName, data); err != nil {
		return err
	}
	s.book.open, s.book.records = true, records
	return nil
}

// openBook reads the file, once; s.book.mu must be held.
func (s *Store) openBook() error {
	if s.book.open {
		return nil
	}
	s.book.open = true
	root, err := s.existing()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v := newView(root)
	defer v.close()
	s.book.records, err = v.readBook()
	return err
}

// sharedKeys lists the objects in the book.
func (s *Store) sharedKeys() ([]Key, error) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	err := s.openBook()
	return slices.Collect(maps.Keys(s.book.records)), err
}

// pruneShared takes the objects out of the book that keep does not want.
func (s *Store) pruneShared(ctx context.Context, keep func(Key) bool) (pruned []Key, err error) {
	keys, err := s.sharedKeys()
	if err != nil || !slices.ContainsFunc(keys, func(k Key) bool { return !keep(k) }) {
		return nil, err
	}
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	err = s.rewrite(ctx, func(records map[Key][]byte) {
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

// readBook returns the records of the file, none if there is no file. With a [*RecordError] there are none either.
func (v *view) readBook() (map[Key][]byte, error) {
	records := map[Key][]byte{}
	data, err := v.readState(bookName, maxBook)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return records, nil
	case errors.Is(err, errTooLarge), errors.Is(err, errIrregular):
		return records, &RecordError{bookName, err}
	case err != nil:
		return records, err
	}
	for line := range bytes.Lines(data) {
		name, record, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		key, ok := parseKey(string(name))
		if !ok {
			return map[Key][]byte{}, &RecordError{bookName, errors.New("a line without an object")}
		}
		records[key] = record
	}
	return records, nil
}

func encodeBook(records map[Key][]byte) ([]byte, error) {
	var b bytes.Buffer
	for _, key := range slices.SortedFunc(maps.Keys(records), compareKeys) {
		b.WriteString(key.String())
		b.WriteByte('\t')
		b.Write(records[key])
		b.WriteByte('\n')
	}
	if b.Len() > maxBook {
		return nil, tooLarge(maxBook)
	}
	return b.Bytes(), nil
}

// parseKey reads what Key.String writes: none of its parts has a slash.
func parseKey(text string) (Key, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Key{}, false
	}
	key, err := Key{parts[0], parts[1], parts[2]}.checked()
	return key, err == nil && key.String() == text
}
