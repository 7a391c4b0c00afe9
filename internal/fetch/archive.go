package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// A DigestPolicy says what happens to an archive that differs from the digest in its index entry.
type DigestPolicy int

// The zero value refuses it.
const (
	DigestEnforce DigestPolicy = iota
	DigestWarn
	DigestIgnore
)

// A DigestError tells that an archive is not the one that the index names.
type DigestError struct {
	File string
	Err  error // *digest.MismatchError
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("archive '%s' is not the one that the index names: %v", e.File, e.Err)
}

func (e *DigestError) Unwrap() error { return e.Err }

// Integrity is true: what was fetched is not what was published.
func (e *DigestError) Integrity() bool { return true }

// Transient is false: the same bytes would come again.
func (e *DigestError) Transient() bool { return false }

// Archive downloads the candidate's archive into dst, at most limit bytes, and checks it against the candidate's digest
// as the options say. Of several URLs the next one is tried only after a network failure, 404, 410 or 5xx.
func (h *HTTP) Archive(ctx context.Context, c resolve.Candidate, dst Sink, limit int64) error {
	targets, err := h.targets(c)
	if err != nil {
		return err
	}
	want := candidateDigest(ctx, c, h.options.Digests)
	return h.operation(ctx, targets[0].url, func(ctx context.Context, x *exchange) error {
		return x.tryEach(ctx, targets, func(t *target) error {
			file := archiveName(c, t.url.Path)
			check := &digestCheck{ctx: ctx, want: want, policy: h.options.Digests, file: file}
			return x.download(ctx, t.url, dst, limit, tooLargeArchive(file, limit), check.consume)
		})
	})
}

// A target is one of the URLs of an archive.
type target struct {
	url *url.URL
	err error // why it is not a URL that can be fetched, or why it is no use to try it again
}

// targets resolves the candidate's URLs. The first one has to be good.
func (h *HTTP) targets(c resolve.Candidate) ([]*target, error) {
	if len(c.URLs) == 0 {
		return nil, fmt.Errorf("chart '%s' has no downloadable URLs", oneLine(c.Name, maxName))
	}
	var targets []*target
	for _, ref := range c.URLs {
		u, err := archiveURL(h.base, ref)
		targets = append(targets, &target{u, err})
	}
	return targets, targets[0].err
}

const maxName = 100

// tryEach tries the targets in order. Those that a retry cannot help are marked, and left out of the next round.
func (x *exchange) tryEach(ctx context.Context, targets []*target, try func(*target) error) error {
	var failed urlsError
	for _, t := range targets {
		err := t.err
		if err == nil {
			err = try(t)
		}
		if err == nil {
			return nil
		}
		failed = append(failed, err)
		if !NextPlace(err) || ctx.Err() != nil {
			break
		}
		if !Transient(err) {
			t.err = err
		}
	}
	return JoinPlaces(failed)
}

// JoinPlaces is the failure of all places of an archive that were tried.
func JoinPlaces(failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	return urlsError(failed)
}

// FailedBefore are the failures of the places that were tried before the last one.
func FailedBefore(err error) []error {
	var all urlsError
	if !errors.As(err, &all) {
		return nil
	}
	return all[:len(all)-1]
}

// NextPlace tells whether a failure is one after which the next place of an archive is tried: of the network, 404, 410 or
// 5xx.
func NextPlace(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code == http.StatusNotFound || status.Code == http.StatusGone || status.Code >= 500
	}
	return Transient(err)
}

// urlsError is the failure of every URL that was tried.
type urlsError []error

func (e urlsError) Error() string {
	var texts []string
	for _, err := range e {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (e urlsError) Unwrap() []error { return e }

// Transient is true if one of them may come back, unless the last one was worth stopping for.
func (e urlsError) Transient() bool {
	last := e[len(e)-1]
	if !NextPlace(last) {
		return Transient(last)
	}
	for _, err := range e {
		if Transient(err) {
			return true
		}
	}
	return false
}

func tooLargeArchive(file string, limit int64) error {
	return &SizeError{fmt.Sprintf("size of chart '%s' exceeds '%d' bytes limit", file, limit)}
}

// archiveName returns what to call an archive in messages.
func archiveName(c resolve.Candidate, urlPath string) string {
	if base := path.Base(urlPath); base != "." && base != "/" {
		return oneLine(base, maxName)
	}
	return oneLine(c.Name+"-"+c.Version+".tgz", maxName)
}

// candidateDigest returns the digest that the candidate's archive has to have, or nothing if there is none to compare
// with.
func candidateDigest(ctx context.Context, c resolve.Candidate, policy DigestPolicy) digest.Digest {
	if policy == DigestIgnore || c.Digest == "" {
		return ""
	}
	want, err := digest.ParseLoose(c.Digest)
	if err != nil {
		warn(ctx, &UncheckedError{oneLine(c.Name, maxName), oneLine(c.Version, maxName), err})
		return ""
	}
	return want
}

// UncheckedError is the warning that the index has no digest for an archive that could be compared.
type UncheckedError struct {
	name, version string
	err           error
}

func (e *UncheckedError) Error() string {
	return fmt.Sprintf("archive of chart '%s' %s is not checked against the index: %v", e.name, e.version, e.err)
}

func (e *UncheckedError) Unwrap() error { return e.err }

// digestCheck compares an archive with its index entry while it is read.
type digestCheck struct {
	ctx    context.Context // for warnings
	want   digest.Digest   // empty: nothing to compare with
	policy DigestPolicy
	file   string
}

// consume reads to the end.
func (d *digestCheck) consume(r io.Reader) error {
	if d.want != "" {
		r = digest.NewReader(r, d.want)
	}
	err := drain(r)
	var mismatch *digest.MismatchError
	if !errors.As(err, &mismatch) {
		return err
	}
	err = &DigestError{File: d.file, Err: mismatch}
	if d.policy == DigestEnforce {
		return err
	}
	warn(d.ctx, err)
	return nil
}
