package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// cachedBucket is the kind of the answers that are kept.
const cachedBucket = "bucket"

// keptBucket is what an earlier run found in a bucket. Its objects are in one archive, whose digest goes with the answer.
type keptBucket struct {
	Objects []keptObject `json:"objects"`
	Ignore  *string      `json:"ignore,omitempty"` // the bucket's own .sourceignore, which is not among the objects
}

type keptObject struct {
	Key  string `json:"key"`
	ETag string `json:"etag"`
}

// memoryName is equal for Buckets that select the same objects of one bucket, and names one revision of theirs, or the last.
func (o Options) memoryName(revision string) string {
	return fmt.Sprintf("%q %q %q", o.Prefix, o.Ignore, revision)
}

// known returns the tree that is wanted as an earlier run has left it: one of a revision that is named, or the last one if
// no connection is to be opened. It is nil if the server has to be asked.
func (b *bucket) known(ctx context.Context) (*fetch.Tree, error) {
	m := &b.Memory
	if b.Revision == "" && !m.Offline() {
		return nil, nil
	}
	t, err := b.recall(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case t != nil || !m.Offline():
		return t, err
	case b.Revision != "":
		return nil, m.Missing(fmt.Sprintf("revision %s of bucket '%s' at %s", b.Revision, b.Bucket, b.Endpoint))
	}
	return nil, m.Missing(fmt.Sprintf("the list of objects of bucket '%s' at %s", b.Bucket, b.Endpoint))
}

// recall makes a tree of what is kept, nil if that is not whole.
func (b *bucket) recall(ctx context.Context) (*fetch.Tree, error) {
	var kept keptBucket
	d, found := b.Memory.Cache.Answer(b.Memory.Scope, cachedBucket, b.memoryName(b.Revision), &kept)
	if !found {
		return nil, nil
	}
	b.found = map[string]listedObject{}
	for _, o := range kept.Objects {
		b.found[o.Key] = listedObject{key: o.Key, etag: o.ETag}
	}
	if b.Revision == "" && b.revision() == b.Unless {
		return &fetch.Tree{Revision: b.Unless, Unchanged: true}, nil
	}
	t, err := b.unpack(ctx, d)
	if t == nil || err != nil {
		return nil, err
	}
	if kept.Ignore != nil {
		err = t.Root.WriteFile(tree.IgnoreFile, []byte(*kept.Ignore), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.Revision, t.Files = b.revision(), len(b.found)
	return t, nil
}

// unpack makes a tree of an archive in the cache, nil if that is not there or cannot be used.
func (b *bucket) unpack(ctx context.Context, d digest.Digest) (*fetch.Tree, error) {
	file, err := b.temporary()
	if err != nil {
		return nil, err
	}
	defer discard(file)
	if !b.Memory.Cache.Load(b.Memory.Scope, d, b.Limits.Total, file) {
		return nil, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	t, err := fetch.NewTree(b.TempDir)
	if err != nil {
		return nil, err
	}
	if err := tree.Unpack(ctx, file, t.Root, b.Limits); err != nil {
		return nil, t.Close() // it is downloaded instead
	}
	return t, nil
}

// reuse copies the objects that have not changed since the last run from what is kept, and returns the others, which are to
// be downloaded.
func (b *bucket) reuse(ctx context.Context, t *fetch.Tree) ([]listedObject, error) {
	all := b.sorted()
	var kept keptBucket
	d, found := b.Memory.Cache.Answer(b.Memory.Scope, cachedBucket, b.memoryName(""), &kept)
	if !found {
		return all, nil
	}
	tags := map[string]string{}
	for _, o := range kept.Objects {
		tags[o.Key] = o.ETag
	}
	same := func(o listedObject) bool { return o.etag != "" && tags[o.key] == o.etag }
	if !anySame(all, same) {
		return all, nil
	}
	old, err := b.unpack(ctx, d)
	if old == nil || err != nil {
		return all, err
	}
	defer func() { _ = old.Close() }()
	var rest []listedObject
	for _, o := range all {
		if !same(o) || !b.take(ctx, o, old.Root, t.Root) {
			rest = append(rest, o)
		}
	}
	return rest, ctx.Err()
}

func anySame(all []listedObject, same func(listedObject) bool) bool {
	for _, o := range all {
		if same(o) {
			return true
		}
	}
	return false
}

// take copies one object. One that cannot be copied is downloaded.
func (b *bucket) take(ctx context.Context, o listedObject, from, to *os.Root) bool {
	in, err := from.Open(o.key)
	if err != nil {
		return false
	}
	defer func() { _ = in.Close() }()
	fi, err := in.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != o.size || b.spend(ctx, fi.Size()) != nil {
		return false
	}
	if to.MkdirAll(path.Dir(o.key), 0o700) != nil {
		return false
	}
	out, err := to.OpenFile(o.key, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close()) == nil
}

// remember keeps what was fetched, for later runs. That it cannot be kept is no reason to fail.
func (b *bucket) remember(ctx context.Context, t *fetch.Tree) {
	m := &b.Memory
	if m.Cache == nil || m.Scope.Source == "" {
		return
	}
	kept := keptBucket{Objects: []keptObject{}}
	for _, o := range b.sorted() {
		kept.Objects = append(kept.Objects, keptObject{o.key, o.etag})
	}
	text, err := t.Root.ReadFile(tree.IgnoreFile)
	switch {
	case err == nil:
		own := string(text)
		kept.Ignore = &own
	case !errors.Is(err, fs.ErrNotExist):
		return
	}
	file, err := b.temporary()
	if err != nil {
		return
	}
	defer discard(file)
	w := digest.NewWriter(godigest.Canonical)
	if tree.Archive(ctx, io.MultiWriter(file, w), t.Root, tree.Options{Filter: withoutIgnoreFile, Limits: b.Limits}) != nil {
		return
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return
	}
	m.Cache.Keep(m.Scope, w.Digest(), w.Size(), file)
	m.Cache.KeepAnswer(m.Scope, cachedBucket, b.memoryName(""), w.Digest(), kept)
	m.Cache.KeepAnswer(m.Scope, cachedBucket, b.memoryName(t.Revision), w.Digest(), kept)
}

func withoutIgnoreFile(name string, _ bool) tree.Choice {
	if name == tree.IgnoreFile {
		return tree.Drop
	}
	return tree.Keep
}

func (b *bucket) temporary() (*os.File, error) { return os.CreateTemp(b.TempDir, "helmsrc-bucket-*") }

func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}
