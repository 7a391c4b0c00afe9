package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// cachedBucket is the kind of the answers that are kept.
const cachedBucket = "bucket"

// keptBucket is the listing of a bucket in an earlier run. Its objects are in one archive, whose digest is kept beside it.
type keptBucket struct {
	Objects []keptObject `json:"objects"`
	Ignore  *string      `json:"ignore,omitempty"` // the bucket's own .sourceignore, which is not among the objects
}

type keptObject struct {
	Key  string `json:"key"`
	ETag string `json:"etag"`
}

// memoryName is equal for Buckets that select the same objects of one bucket. It names one revision of theirs, or the last if
// revision is empty.
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
	t, err := b.recall(ctx, b.Revision)
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

// recall returns the tree of a revision that is kept, or of the last one without a revision. It is nil if the cache does not
// have all of it.
func (b *bucket) recall(ctx context.Context, revision string) (*fetch.Tree, error) {
	var kept keptBucket
	d, found := b.Memory.Cache.Answer(b.Memory.Scope, cachedBucket, b.memoryName(revision), &kept)
	if !found {
		return nil, nil
	}
	objects := make([]listedObject, len(kept.Objects))
	for i, o := range kept.Objects {
		objects[i] = listedObject{key: o.Key, etag: o.ETag}
	}
	of := b.revisionOf(objects)
	if revision == "" && of == b.Unless {
		return &fetch.Tree{Revision: of, Unchanged: true}, nil
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
	t.Revision, t.Files = of, len(objects)
	return t, nil
}

// unpack returns the tree of an archive in the cache, nil if the archive is missing or cannot be used.
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

// remember keeps the fetched objects for later runs. A failure to keep them is not an error.
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
