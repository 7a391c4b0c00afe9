// Package digest computes and checks digests of streams. It does not know the meaning or the origin of the bytes.
package digest

import (
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	godigest "github.com/opencontainers/go-digest"
)

// Digest is "<algorithm>:<hex>", as OCI and Flux write it.
type Digest = godigest.Digest

// newHash returns nil for an unsupported algorithm.
func newHash(a godigest.Algorithm) hash.Hash {
	switch a {
	case godigest.SHA256:
		return sha256.New()
	case godigest.SHA384:
		return sha512.New384()
	case godigest.SHA512:
		return sha512.New()
	}
	return nil
}

// A MalformedError reports that a string is not a digest. It has its own type because an index with an unreadable digest
// causes a warning, while one with a wrong digest is refused.
type MalformedError struct {
	Value  string
	Reason string
}

// maxShown is the limit, in bytes, of a quoted digest, so that a hostile index cannot fill the terminal: no digest is longer.
const maxShown = len("sha512:") + 2*sha512.Size

func (e *MalformedError) Error() string {
	shown := e.Value
	if len(shown) > maxShown {
		shown = shown[:maxShown] + "…"
	}
	return fmt.Sprintf("malformed digest %q: %s", shown, e.Reason)
}

// Parse parses "<algorithm>:<hex>". The algorithm and the hex digits must be lower case, as the OCI image specification
// demands. The error is a [*MalformedError].
func Parse(s string) (Digest, error) {
	name, encoded, found := strings.Cut(s, ":")
	if !found {
		return "", &MalformedError{s, "no algorithm in front"}
	}
	h := newHash(godigest.Algorithm(name))
	if h == nil {
		return "", &MalformedError{s, "algorithm must be one of sha256, sha384, sha512"}
	}
	if len(encoded) != 2*h.Size() {
		return "", &MalformedError{s, fmt.Sprintf("%s has %d hex digits, not %d", name, 2*h.Size(), len(encoded))}
	}
	for _, c := range []byte(encoded) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return "", &MalformedError{s, "not lower case hex"}
		}
	}
	return Digest(s), nil
}

// ParseLoose parses a digest as Helm indexes write it: bare hex is SHA-256, and an algorithm may precede it as in [Parse].
// Case does not matter, because Helm never compared these digests and some generators print upper case hex; the result is
// lower case. Surrounding white space is malformed.
func ParseLoose(s string) (Digest, error) {
	lower := strings.ToLower(s)
	if !strings.Contains(s, ":") {
		lower = godigest.SHA256.String() + ":" + lower
	}
	d, err := Parse(lower)
	var malformed *MalformedError
	if errors.As(err, &malformed) {
		return "", &MalformedError{s, malformed.Reason}
	}
	return d, err
}

// A Writer hashes and counts the bytes written to it. A write never fails.
type Writer struct {
	algorithm godigest.Algorithm
	hash      hash.Hash
	size      int64
}

// NewWriter returns a Writer for an algorithm that [Algorithm] returned. It panics for other algorithms, which are a
// programming error.
func NewWriter(a godigest.Algorithm) *Writer {
	h := newHash(a)
	if h == nil {
		panic(fmt.Sprintf("digest: algorithm %q is not available", a))
	}
	return &Writer{algorithm: a, hash: h}
}

func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.hash.Write(p)
	w.size += int64(n)
	return n, err
}

// Digest returns the digest of everything written since the last Reset. The caller may continue to write.
func (w *Writer) Digest() Digest { return godigest.NewDigest(w.algorithm, w.hash) }

// Size returns the number of bytes written since the last Reset.
func (w *Writer) Size() int64 { return w.size }

// Reset resets the digest and the size.
func (w *Writer) Reset() {
	w.hash.Reset()
	w.size = 0
}

// A MismatchError reports that bytes do not have the expected digest.
type MismatchError struct {
	Want, Got Digest
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("computed digest doesn't match '%s': got '%s'", e.Want, e.Got)
}

// NewReader returns a reader of r's bytes that ends with a [*MismatchError] instead of io.EOF if their digest is not want. It
// fails at once with a [*MalformedError] if want is not a digest: a check that cannot be made never passes. Later reads repeat
// every error, including io.EOF.
func NewReader(r io.Reader, want Digest) io.Reader {
	d, err := Parse(string(want))
	if err != nil {
		return &reader{err: err}
	}
	return &reader{source: r, want: d, seen: NewWriter(d.Algorithm())}
}

type reader struct {
	source io.Reader
	want   Digest
	seen   *Writer
	err    error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.source.Read(p)
	_, _ = r.seen.Write(p[:n])
	if err == io.EOF { //nolint:errorlint // io.Reader's contract: io.EOF itself
		err = r.verify()
	}
	r.err = err
	return n, err
}

// verify returns io.EOF if the digest is right.
func (r *reader) verify() error {
	if got := r.seen.Digest(); got != r.want {
		return &MismatchError{Want: r.want, Got: got}
	}
	return io.EOF
}

// Short returns the beginning of a digest, for people.
func Short(digest string) string { return digest[:min(len(digest), len("sha256:")+12)] }
