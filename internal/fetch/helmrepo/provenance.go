package helmrepo

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Provenance downloads the provenance file of the candidate's archive into dst. It tries several URLs as Archive does.
// If no server has the file, the error matches fs.ErrNotExist.
func (h *Repository) Provenance(ctx context.Context, c resolve.Candidate, dst fetch.Sink) error {
	targets, err := h.targets(c)
	if err != nil {
		return err
	}
	file := finding.OneLine(path.Base(targets[0].url.Path), fetch.MaxName) + fetch.ProvenanceSuffix
	tooLarge := fetch.ProvenanceTooLarge(file)
	err = h.operation(ctx, targets[0].url, func(ctx context.Context, x *exchange) error {
		return x.tryEach(ctx, targets, func(t *target) error {
			u := *t.url
			u.Path, u.RawPath = u.Path+fetch.ProvenanceSuffix, ""
			return x.download(ctx, &u, dst, fetch.MaxProvenanceBytes, tooLarge, fetch.Drain)
		})
	})
	if absent(err) {
		return fetch.NoProvenance(file)
	}
	return err
}

// absent reports whether every server answered that there is no such file. A server that could not be reached may have
// it.
func absent(err error) bool {
	if several, ok := errors.AsType[urlsError](err); ok {
		return !slices.ContainsFunc(several, func(err error) bool { return !absent(err) })
	}
	var status *fetch.StatusError
	return errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone)
}

// Provenance copies the provenance file beside the candidate's archive into dst. If the file is missing, the error
// matches fs.ErrNotExist.
func (d *Directory) Provenance(ctx context.Context, c resolve.Candidate, dst fetch.Sink) error {
	for _, name := range localNames(c) {
		// The file has to belong to the archive that is used.
		if _, err := d.root.Stat(name); err != nil {
			continue
		}
		file := finding.OneLine(path.Base(filepath.ToSlash(name)), fetch.MaxName) + fetch.ProvenanceSuffix
		err := d.copyFile(ctx, name+fetch.ProvenanceSuffix, dst, fetch.MaxProvenanceBytes, fetch.ProvenanceTooLarge(file), fetch.Drain)
		if errors.Is(err, fs.ErrNotExist) {
			return fetch.NoProvenance(file)
		}
		return err
	}
	return fetch.NoProvenance(strings.Join(c.URLs, ", "))
}
