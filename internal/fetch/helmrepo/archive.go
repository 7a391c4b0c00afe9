package helmrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Archive downloads the candidate's archive into dst, at most limit bytes, and checks it against the candidate's digest
// as the options say. Of several URLs the next one is tried only after a network failure, 404, 410 or 5xx.
func (h *Repository) Archive(ctx context.Context, c resolve.Candidate, dst fetch.Sink, limit int64) error {
	targets, err := h.targets(c)
	if err != nil {
		return err
	}
	want := fetch.CandidateDigest(ctx, c, h.options.Digests)
	return h.operation(ctx, targets[0].url, func(ctx context.Context, x *exchange) error {
		return x.tryEach(ctx, targets, func(t *target) error {
			file := archiveName(c, t.url.Path)
			check := &digestCheck{ctx: ctx, want: want, policy: h.options.Digests, file: file}
			return x.download(ctx, t.url, dst, limit, fetch.TooLargeArchive(file, limit), check.consume)
		})
	})
}

// A target is a URL of an archive.
type target struct {
	url *url.URL
	err error // the reason for which it cannot be fetched, or a retry does not help
}

// targets resolves the candidate's URLs. An invalid first URL is an error.
func (h *Repository) targets(c resolve.Candidate) ([]*target, error) {
	if len(c.URLs) == 0 {
		return nil, fmt.Errorf("chart '%s' has no downloadable URLs", finding.OneLine(c.Name, fetch.MaxName))
	}
	var targets []*target
	for _, ref := range c.URLs {
		u, err := archiveURL(h.base, ref)
		targets = append(targets, &target{u, err})
	}
	return targets, targets[0].err
}

// tryEach tries the targets in order. A target for which a retry does not help is marked, and left out of the next round.
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
		if !TryNextURL(err) || ctx.Err() != nil {
			break
		}
		if !fetch.Transient(err) {
			t.err = err
		}
	}
	return JoinPlaces(failed)
}

// JoinPlaces returns the error of an archive that could not be fetched from any of the places that were tried.
func JoinPlaces(failed []error) error {
	if len(failed) == 1 {
		return failed[0]
	}
	return urlsError(failed)
}

// FailedBefore returns the failures of the places that were tried before the last place.
func FailedBefore(err error) []error {
	var all urlsError
	if !errors.As(err, &all) {
		return nil
	}
	return all[:len(all)-1]
}

// TryNextURL reports whether the next URL of an archive is tried after this failure: one of the network, 404, 410 or
// 5xx.
func TryNextURL(err error) bool {
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		return status.Code == http.StatusNotFound || status.Code == http.StatusGone || status.Code >= 500
	}
	return fetch.Transient(err)
}

// An urlsError holds the failures of all URLs that were tried.
type urlsError []error

func (e urlsError) Error() string {
	var texts []string
	for _, err := range e {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (e urlsError) Unwrap() []error { return e }

// Transient reports whether one of the failures may pass. After a failure that kept the next URL from being tried, only that
// failure counts.
func (e urlsError) Transient() bool {
	if last := e[len(e)-1]; !TryNextURL(last) {
		return fetch.Transient(last)
	}
	return slices.ContainsFunc(e, fetch.Transient)
}

// archiveName returns the name of an archive in messages.
func archiveName(c resolve.Candidate, urlPath string) string {
	if base := path.Base(urlPath); base != "." && base != "/" {
		return finding.OneLine(base, fetch.MaxName)
	}
	return finding.OneLine(c.Name+"-"+c.Version+".tgz", fetch.MaxName)
}

// A digestCheck compares an archive with the digest in its index entry while the archive is read.
type digestCheck struct {
	ctx    context.Context // for warnings
	want   digest.Digest   // empty: it is not compared
	policy fetch.DigestPolicy
	file   string
}

// consume reads the archive to its end. A wrong digest is an error or, if the policy allows it, a warning.
func (d *digestCheck) consume(r io.Reader) error {
	if d.want != "" {
		r = digest.NewReader(r, d.want)
	}
	err := fetch.Drain(r)
	var mismatch *digest.MismatchError
	if !errors.As(err, &mismatch) {
		return err
	}
	err = &fetch.DigestError{File: d.file, Err: mismatch}
	if d.policy == fetch.DigestEnforce {
		return err
	}
	fetch.Warn(d.ctx, err)
	return nil
}
