package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"strings"

	"github.com/helmsrc/helmsrc/internal/resolve"
)

// A chart's provenance file is called as its archive, with this after it.
const provenanceSuffix = ".prov"

// maxProvenanceBytes is far above what a signed Chart.yaml and a hash have.
const maxProvenanceBytes = 1 << 20

// A ProvenanceError tells that a provenance file is not there, or too big to be one. The former matches fs.ErrNotExist.
type ProvenanceError struct {
	File string
	Err  error
}

func (e *ProvenanceError) Error() string {
	return fmt.Sprintf("provenance file '%s': %v", e.File, e.Err)
}

func (e *ProvenanceError) Unwrap() error { return e.Err }

// Integrity is true: what is not signed is not what was asked for.
func (e *ProvenanceError) Integrity() bool { return true }

// Transient is false.
func (e *ProvenanceError) Transient() bool { return false }

var errProvenanceSize = fmt.Errorf("size exceeds '%d' bytes limit", maxProvenanceBytes)

// Provenance downloads the provenance file of the candidate's archive into dst. Of several URLs the next one is tried as
// for the archive. If no server has it, the error matches fs.ErrNotExist.
func (h *HTTP) Provenance(ctx context.Context, c resolve.Candidate, dst Sink) error {
	targets, err := h.targets(c)
	if err != nil {
		return err
	}
	file := oneLine(path.Base(targets[0].url.Path), maxName) + provenanceSuffix
	tooLarge := &ProvenanceError{File: file, Err: errProvenanceSize}
	err = h.operation(ctx, targets[0].url, func(ctx context.Context, x *exchange) error {
		return x.tryEach(ctx, targets, func(t *target) error {
			u := *t.url
			u.Path, u.RawPath = u.Path+provenanceSuffix, ""
			return x.download(ctx, &u, dst, maxProvenanceBytes, tooLarge, drain)
		})
	})
	if absent(err) {
		return &ProvenanceError{File: file, Err: fs.ErrNotExist}
	}
	return err
}

// absent tells whether every server that was asked said that there is no such file. One that could not be asked may
// have it.
func absent(err error) bool {
	var several urlsError
	if errors.As(err, &several) {
		for _, err := range several {
			if !absent(err) {
				return false
			}
		}
		return true
	}
	var status *StatusError
	return errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone)
}

// Provenance copies the provenance file beside the candidate's archive into dst. If there is none, the error matches
// fs.ErrNotExist.
func (d *Dir) Provenance(ctx context.Context, c resolve.Candidate, dst Sink) error {
	for _, name := range localNames(c) {
		// The file has to belong to the archive that is used.
		if _, err := d.root.Stat(name); err != nil {
			continue
		}
		file := oneLine(path.Base(filepath.ToSlash(name)), maxName) + provenanceSuffix
		err := d.copyFile(ctx, name+provenanceSuffix, dst, maxProvenanceBytes, &ProvenanceError{File: file, Err: errProvenanceSize}, drain)
		if errors.Is(err, fs.ErrNotExist) {
			return &ProvenanceError{File: file, Err: fs.ErrNotExist}
		}
		return err
	}
	return &ProvenanceError{File: strings.Join(c.URLs, ", "), Err: fs.ErrNotExist}
}

// ProvenanceFile downloads a pinned chart's provenance file into dst. If it has none, the error matches fs.ErrNotExist.
func (o *OCI) ProvenanceFile(ctx context.Context, m *Manifest, dst Sink) error {
	if m.Provenance == nil {
		return &ProvenanceError{File: m.file() + provenanceSuffix, Err: fs.ErrNotExist}
	}
	if m.Provenance.Size > maxProvenanceBytes {
		return &ProvenanceError{File: m.file() + provenanceSuffix, Err: errProvenanceSize}
	}
	return o.blob(ctx, m, &blob{desc: *m.Provenance, dst: dst, limit: maxProvenanceBytes})
}

// OCIProvenance is ProvenanceFile for an archive that [Client.OCIArchive] downloads.
func (c *Client) OCIProvenance(ctx context.Context, ref, version string, o OCIOptions, dst Sink) error {
	repo, m, err := c.pinReference(ctx, ref, version, o)
	if err != nil {
		return err
	}
	return repo.ProvenanceFile(ctx, m, dst)
}

// Provenance downloads the provenance file in an artifact into dst. If it has none, the error matches fs.ErrNotExist.
func (r *OCIRepository) Provenance(ctx context.Context, a *OCIArtifact, dst Sink) error {
	file := r.shown + "@" + a.Digest.String() + provenanceSuffix
	layer, err := a.Layer(helmProvenanceType)
	if err != nil {
		return &ProvenanceError{File: file, Err: fs.ErrNotExist}
	}
	if layer.Size > maxProvenanceBytes {
		return &ProvenanceError{File: file, Err: errProvenanceSize}
	}
	return r.Pull(ctx, layer, dst, maxProvenanceBytes)
}
