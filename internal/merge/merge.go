// Package merge joins artifacts directories, each of which has a part of the objects of a run. It does not change the
// directories that it joins. It knows nothing about their origin, and of a status only the artifact.
package merge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/work"
)

// A Directory is a directory that is joined with the rest.
type Directory struct {
	Name  string // as the user wrote it
	Store *store.Store
}

// Options hold the rules for kinds.
type Options struct {
	// Moves reports whether an object of a kind may change between the runs, so that the newest is taken. For the other kinds,
	// directories with different bytes are an error. It gets kinds in lower case.
	Moves func(kind string) bool
	// Link returns the name of the link to the newest artifact of a kind, or "".
	Link func(kind string) string
	// Check returns an error if the record of a key concerns other objects.
	Check func(key store.Key, r *store.Record) error
	// Concurrency is the number of objects that are copied at a time.
	Concurrency int
}

// Outcome is the result of a join.
type Outcome struct {
	Joined, Unchanged int
	// Moved are the objects whose newest version was taken, Failed those that are not joined, in the order of their keys.
	Moved  []Conflict
	Failed []Failure
}

// A Conflict is an object that differs between directories.
type Conflict struct {
	Key  store.Key
	A, B string // the directories; if the newest is taken, that of A
	What string // the difference
}

func (c *Conflict) String() string {
	return fmt.Sprintf("it differs between %s and %s: %s", c.A, c.B, c.What)
}

// An AlteredError reports that an artifact or a record was altered.
type AlteredError struct{ Err error }

func (e *AlteredError) Error() string { return e.Err.Error() }
func (e *AlteredError) Unwrap() error { return e.Err }

// A Failure is the reason why an object is not joined.
type Failure struct {
	Key store.Key
	Err error
}

// Join copies the contents of the directories into one. An object is copied completely or not at all, so that a killed run can
// be repeated. The error ends the whole join.
func Join(ctx context.Context, to *store.Store, from []Directory, o Options) (*Outcome, error) {
	if err := to.Load(); err != nil {
		return nil, err
	}
	holders := map[store.Key][]Directory{}
	for _, d := range from {
		keys, err := d.Store.Keys()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		for _, key := range keys {
			holders[key] = append(holders[key], d)
		}
	}
	j := &joining{to: to, options: o}
	keys := slices.SortedFunc(maps.Keys(holders), compareKeys)
	work.Ordered(len(keys), o.Concurrency, func(i int) {
		if ctx.Err() == nil {
			j.object(ctx, keys[i], holders[keys[i]])
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, d := range from {
		d.Store.Unload()
	}
	if err := to.Save(ctx); err != nil {
		return nil, err
	}
	to.Unload()
	slices.SortFunc(j.out.Moved, func(a, b Conflict) int { return compareKeys(a.Key, b.Key) })
	slices.SortFunc(j.out.Failed, func(a, b Failure) int { return compareKeys(a.Key, b.Key) })
	return &j.out, nil
}

func compareKeys(a, b store.Key) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) }

type joining struct {
	to      *store.Store
	options Options

	mu  sync.Mutex
	out Outcome
}

// holding is an object in one directory.
type holding struct {
	in       Directory
	record   *store.Record
	artifact *artifact // nil without an artifact
}

// artifact is the artifact of a status.
type artifact struct {
	Path           string    `json:"path"`
	Digest         string    `json:"digest"`
	LastUpdateTime time.Time `json:"lastUpdateTime"`
	Size           int64     `json:"size"`
}

func (j *joining) object(ctx context.Context, key store.Key, directories []Directory) {
	joined, moved, err := j.join(ctx, key, directories)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err != nil:
		j.out.Failed = append(j.out.Failed, Failure{key, err})
	case joined:
		j.out.Joined++
	default:
		j.out.Unchanged++
	}
	if moved != nil && err == nil {
		j.out.Moved = append(j.out.Moved, *moved)
	}
}

func (j *joining) join(ctx context.Context, key store.Key, directories []Directory) (joined bool, moved *Conflict, err error) {
	var held []holding
	for _, d := range directories {
		h, err := j.read(d, key)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a run was killed before it recorded the object
		}
		if err != nil {
			return false, nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		held = append(held, h)
	}
	if len(held) == 0 {
		return false, nil, nil
	}
	slices.SortStableFunc(held, compareHoldings)
	conflict := differing(key, held)
	if conflict != nil && !j.options.Moves(key.Kind) {
		return false, nil, errors.New(conflict.String())
	}
	joined, err = j.copy(ctx, key, held[0])
	return joined, conflict, err
}

// read returns an object of a directory. It is an error if its record concerns other objects: the directory comes from another
// machine, and its key limits a record to one object.
func (j *joining) read(d Directory, key store.Key) (holding, error) {
	record, err := d.Store.Recall(key)
	if err != nil {
		return holding{}, err
	}
	if err := j.options.Check(key, record); err != nil {
		return holding{}, &AlteredError{err}
	}
	var status struct {
		Artifact *artifact `json:"artifact"`
	}
	if len(record.Status) > 0 {
		if err := json.Unmarshal(record.Status, &status); err != nil {
			return holding{}, fmt.Errorf("recorded status: %w", err)
		}
	}
	if a := status.Artifact; a != nil {
		if own, err := key.Path(path.Base(a.Path)); err != nil || own != a.Path {
			return holding{}, &AlteredError{fmt.Errorf("%q is not a path of its artifact", a.Path)}
		}
	}
	return holding{d, record, status.Artifact}, nil
}

// compareHoldings orders the preferred holding first: successes, then the newest. The order of the directories does not
// matter, unless all else is equal.
func compareHoldings(a, b holding) int {
	failed := func(h holding) int {
		if h.record.Failure != "" {
			return 1
		}
		return 0
	}
	return cmp.Or(failed(a)-failed(b), b.updated().Compare(a.updated()),
		bytes.Compare(b.record.Status, a.record.Status), bytes.Compare(b.record.Object, a.record.Object))
}

func (h holding) updated() time.Time {
	if h.artifact == nil {
		return time.Time{}
	}
	return h.artifact.LastUpdateTime
}

// differing returns a conflict if two directories have different successful results for an object. The times of the runs are
// ignored.
func differing(key store.Key, held []holding) *Conflict {
	first := held[0]
	if first.record.Failure != "" {
		return nil
	}
	for _, h := range held[1:] {
		if h.record.Failure != "" {
			break
		}
		if what := difference(first, h); what != "" {
			return &Conflict{Key: key, A: first.in.Name, B: h.in.Name, What: what}
		}
	}
	return nil
}

func difference(a, b holding) string {
	x, y := artifact{}, artifact{}
	if a.artifact != nil {
		x = *a.artifact
	}
	if b.artifact != nil {
		y = *b.artifact
	}
	switch {
	case x.Digest != y.Digest:
		return fmt.Sprintf("artifact %s (%s), artifact %s (%s)", orNone(path.Base(x.Path)), orNone(x.Digest), orNone(path.Base(y.Path)), orNone(y.Digest))
	case a.record.Chart != b.record.Chart:
		return fmt.Sprintf("chart %s %s, chart %s %s", a.record.Chart.Name, a.record.Chart.Version, b.record.Chart.Name, b.record.Chart.Version)
	case !bytes.Equal(a.record.Object, b.record.Object):
		return "the spec or metadata of the object differs"
	}
	return ""
}

func orNone(s string) string {
	if s == "" || s == "." {
		return "none"
	}
	return s
}

// copy copies an object, unless it exists in the target.
func (j *joining) copy(ctx context.Context, key store.Key, h holding) (copied bool, err error) {
	if h.artifact == nil {
		if j.same(key, h) {
			return false, nil
		}
		return true, j.remember(ctx, key, h.record)
	}
	unlock, err := j.to.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	same := j.same(key, h)
	if !same && !j.holds(h.artifact) {
		if err := j.store(key, h); err != nil {
			return false, err
		}
	}
	if link := j.options.Link(key.Kind); link != "" {
		_ = j.to.Relink(h.artifact.Path, link) // a killed run may not have made it; status reports a missing link
	}
	if same {
		return false, nil
	}
	return true, j.to.Remember(key, h.record, nil)
}

// same reports whether the target already has the object with the same record.
func (j *joining) same(key store.Key, h holding) bool {
	there, err := j.to.Recall(key)
	if err != nil {
		return false
	}
	a, errA := json.Marshal(there)
	b, errB := json.Marshal(h.record)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		return false
	}
	return h.artifact == nil || j.holds(h.artifact)
}

// holds reports whether an artifact exists with the size and the digest of its status.
func (j *joining) holds(a *artifact) bool {
	f, err := j.to.OpenArtifact(a.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	fi, err := f.Stat()
	return err == nil && fi.Size() == a.Size && j.to.Verify(a.Path, a.Digest) == nil
}

// remember records an object without an artifact.
func (j *joining) remember(ctx context.Context, key store.Key, r *store.Record) (err error) {
	unlock := func() error { return nil }
	if !j.to.Shares(key) {
		if unlock, err = j.to.Lock(ctx, key); err != nil {
			return err
		}
	}
	return errors.Join(j.to.Remember(key, r, nil), unlock())
}

// store copies an artifact. The file gets its name only after its digest was verified.
func (j *joining) store(key store.Key, h holding) (err error) {
	want, err := digest.Parse(h.artifact.Digest)
	if err != nil {
		return &AlteredError{fmt.Errorf("%s: digest %q: %w", h.in.Name, h.artifact.Digest, err)}
	}
	f, err := h.in.Store.OpenArtifact(h.artifact.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", h.in.Name, err)
	}
	defer f.Close()
	p, err := j.to.Create(key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Discard()) }()
	sum := digest.NewWriter(want.Algorithm())
	n, err := io.Copy(io.MultiWriter(p, sum), io.LimitReader(f, h.artifact.Size+1))
	if err != nil {
		return err
	}
	what := ""
	switch {
	case n > h.artifact.Size:
		what = fmt.Sprintf("it has more than %d bytes", h.artifact.Size)
	case sum.Digest() != want:
		what = fmt.Sprintf("its digest is %s, not %s", sum.Digest(), want)
	case n < h.artifact.Size:
		what = fmt.Sprintf("it has %d bytes, not %d", n, h.artifact.Size)
	}
	if what != "" {
		return &AlteredError{fmt.Errorf("%s: the artifact %s was altered: %s", h.in.Name, h.artifact.Path, what)}
	}
	_, err = p.Commit(path.Base(h.artifact.Path), "")
	return err
}
