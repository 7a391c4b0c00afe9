package bucket

import (
	"context"
	"errors"
	"io"
	"os"
	"path"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

// object downloads one object to its place in the tree and returns its entity tag. After a failure, no part of the
// object is left.
func (b *bucket) object(ctx context.Context, o listedObject, t *fetch.Tree) (string, error) {
	key := o.key
	from, err := b.store.open(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { _ = from.body.Close() }()
	if from.size > b.Limits.File {
		return "", b.tooLarge("object '"+key+"'", b.Limits.File)
	}
	if err := t.Root.MkdirAll(path.Dir(key), 0o700); err != nil {
		return "", err
	}
	to, err := t.Root.OpenFile(key, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, &objectReader{bucket: b, ctx: ctx, from: from.body, key: key, left: b.Limits.File, want: from.size})
	if err := errors.Join(err, to.Close()); err != nil {
		_ = t.Root.Remove(key)
		return "", err
	}
	return from.etag, nil
}

// objectReader is the body of an object: bounded alone and together with the other objects, and checked to be complete.
type objectReader struct {
	bucket *bucket
	ctx    context.Context
	from   io.Reader
	key    string
	left   int64
	want   int64 // so many more; -1 is not known
}

func (r *objectReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, r.bucket.tooLarge("object '"+r.key+"'", r.bucket.Limits.File)
	}
	if spent := r.bucket.spend(r.ctx, int64(n)); spent != nil {
		return 0, spent
	}
	if r.want >= 0 {
		r.want -= int64(n)
	}
	if errors.Is(err, io.EOF) && r.want > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// spend counts the downloaded bytes of all objects together.
func (b *bucket) spend(ctx context.Context, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= n
	b.read += n
	if b.left < 0 {
		return b.tooLarge("size", b.Limits.Total)
	}
	fetch.Report(ctx, fetch.Progress{Read: b.read, Total: -1})
	return nil
}

func (b *bucket) tooLarge(what string, limit int64) error {
	return wrong("", "fetch from bucket '%s' failed: its %s is larger than %d", b.Bucket, what, limit)
}
