package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"

	"github.com/minio/minio-go/v7"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// object downloads one object to its place in the tree and returns its entity tag. Of an object that fails nothing is
// left.
func (b *bucket) object(ctx context.Context, key string, t *Tree) (string, error) {
	core := minio.Core{Client: b.client}
	from, info, _, err := core.GetObject(ctx, b.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return "", err
	}
	defer func() { _ = from.Close() }()
	if info.Size > b.Limits.File {
		return "", b.tooLarge("object '"+key+"'", b.Limits.File)
	}
	if err := t.Root.MkdirAll(path.Dir(key), 0o700); err != nil {
		return "", err
	}
	to, err := t.Root.OpenFile(key, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, &objectReader{bucket: b, ctx: ctx, from: from, key: key, left: b.Limits.File, want: info.Size})
	if err := errors.Join(err, to.Close()); err != nil {
		_ = t.Root.Remove(key)
		return "", err
	}
	return info.ETag, nil
}

// objectReader is the body of an object: bounded alone and together with the others, and whole.
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

// spend counts what is downloaded, of all objects together.
func (b *bucket) spend(ctx context.Context, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left -= n
	b.read += n
	if b.left < 0 {
		return b.tooLarge("size", b.Limits.Total)
	}
	report(ctx, Progress{Attempt: b.attempt, Read: b.read, Total: -1})
	return nil
}

func (b *bucket) tooLarge(what string, limit int64) error {
	return &BucketError{text: fmt.Sprintf("fetch from bucket '%s' failed: its %s is larger than %d", b.Bucket, what, limit)}
}

// A BucketError tells what is wrong with a bucket.
type BucketError struct {
	text string
	hint string
	err  error // nil if the text says everything
}

func (e *BucketError) Error() string { return e.text }

func (e *BucketError) Unwrap() error { return e.err }

// Hint tells what to do, or is empty.
func (e *BucketError) Hint() string { return e.hint }

// Transient tells whether asking again may help.
func (e *BucketError) Transient() bool {
	if e.err == nil {
		return false
	}
	var answer minio.ErrorResponse
	if errors.As(e.err, &answer) {
		return transientStatus(answer.StatusCode) || answer.Code == "SlowDown"
	}
	return transientRequest(e.err)
}

// AuthFailure tells whether credentials are the reason.
func (e *BucketError) AuthFailure() bool {
	var answer minio.ErrorResponse
	if !errors.As(e.err, &answer) {
		return AuthFailure(e.err)
	}
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden
}

// failed describes what went wrong. Requests are signed in their URLs and headers, and servers like to quote them.
func (b *bucket) failed(ctx context.Context, what string, err error) error {
	var own *BucketError
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = endOf(ctx)
	}
	err = auth.RedactURLError(err)
	text := oneLine(b.Login.scrub(b.STS.scrub(err.Error())), maxErrorText)
	e := &BucketError{err: err}
	e.text = what + ": " + text
	switch {
	case e.AuthFailure() && b.Login == nil && b.STS == nil:
		e.hint = "the bucket may want credentials: refer with spec.secretRef to a Secret with accesskey and secretkey"
	case e.AuthFailure():
		e.hint = "the credentials may be wrong, or lack the permissions s3:ListBucket and s3:GetObject"
	}
	return e
}

// notFound tells whether an object is not there any more. A bucket that is not there is another matter.
func notFound(err error) bool {
	var answer minio.ErrorResponse
	return errors.As(err, &answer) && answer.Code == minio.NoSuchKey
}
