package helmrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// Directory is a local directory that replaces a Helm repository of either type. Without an index.yaml, an index of its chart
// archives is generated. Links never lead outside it. It is safe for concurrent use.
type Directory struct {
	// Digests and Limits may be set before the first use. The zero values refuse wrong digests and are Helm's limits.
	Digests fetch.DigestPolicy
	Limits  chart.Limits // of the archives that an index is made of
	// Archives are the paths of the archives in a generated index, slash-separated and at any depth. If it is not nil, an
	// index.yaml and all other archives are ignored.
	Archives []string

	root *os.Root
}

// OpenDirectory opens a directory, which has to be closed.
func OpenDirectory(dir string) (*Directory, error) {
	root, err := file.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Directory{root: root}, nil
}

// Close closes the directory.
func (d *Directory) Close() error { return d.root.Close() }

// Index copies the directory's index, or a generated one, into dst, at most limit bytes, and scans it meanwhile. Files have no tags.
func (d *Directory) Index(ctx context.Context, dst fetch.Sink, limit int64, _ Tag) (*index.Offsets, Tag, error) {
	var scan indexScan
	err := fs.ErrNotExist
	if d.Archives == nil {
		err = d.copyFile(ctx, indexFile, dst, limit, tooLargeIndex(limit), scan.consume)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = d.makeIndex(ctx, dst, limit, scan.consume)
	}
	if err != nil {
		return nil, "", err
	}
	return scan.offsets, "", nil
}

func (d *Directory) makeIndex(ctx context.Context, dst fetch.Sink, limit int64, consume func(io.Reader) error) error {
	content, err := d.generateIndex(ctx)
	if err != nil {
		return err
	}
	if err := dst.Reset(); err != nil {
		return fmt.Errorf("cannot start over: %w", err)
	}
	return fetch.Pump(localBody(ctx, strings.NewReader(content), int64(len(content)), limit, tooLargeIndex(limit)), dst, consume)
}

// Archive copies the candidate's archive into dst, at most limit bytes, and checks it against the candidate's digest.
// It looks for the path of a URL without a host, for the base name of a URL, and for NAME-VERSION.tgz.
func (d *Directory) Archive(ctx context.Context, c resolve.Candidate, dst fetch.Sink, limit int64) error {
	names := localNames(c)
	want := fetch.CandidateDigest(ctx, c, d.Digests)
	for _, name := range names {
		file := finding.OneLine(path.Base(filepath.ToSlash(name)), fetch.MaxName)
		check := &digestCheck{ctx: ctx, want: want, policy: d.Digests, file: file}
		err := d.copyFile(ctx, name, dst, limit, fetch.TooLargeArchive(file, limit), check.consume)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("archive of chart '%s' %s is not in the directory, looked for %s: %w", finding.OneLine(c.Name, fetch.MaxName),
		finding.OneLine(c.Version, fetch.MaxName), finding.OneLine(strings.Join(names, ", "), fetch.MaxErrorText), fs.ErrNotExist)
}

// localNames returns the paths at which an archive may be, the most exact path first.
func localNames(c resolve.Candidate) []string {
	var names []string
	add := func(slashed string) {
		name, err := filepath.Localize(strings.TrimPrefix(path.Clean("/"+slashed), "/"))
		if err == nil && name != "." && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, ref := range c.URLs {
		u, err := url.Parse(ref)
		if err != nil {
			continue
		}
		if !u.IsAbs() && u.Host == "" {
			add(u.Path)
		}
		add(path.Base(path.Clean("/" + u.Path)))
	}
	add(path.Base(c.Name) + "-" + c.Version + ".tgz")
	return names
}

// copyFile copies a regular file. If the file is missing, the error matches fs.ErrNotExist.
func (d *Directory) copyFile(ctx context.Context, name string, dst fetch.Sink, limit int64, tooLarge error, consume func(io.Reader) error) error {
	f, size, err := openRegular(d.root, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if size > limit {
		return tooLarge
	}
	if err := dst.Reset(); err != nil {
		return fmt.Errorf("cannot start over: %w", err)
	}
	return fetch.Pump(localBody(ctx, f, size, limit, tooLarge), dst, consume)
}

func localBody(ctx context.Context, r io.Reader, size, limit int64, tooLarge error) *fetch.Body {
	return &fetch.Body{
		Ctx: ctx, Raw: r, Left: limit, TooLarge: tooLarge, Progress: fetch.Progress{Total: size},
	}
}

// openRegular opens a regular file, and returns its size.
func openRegular(root *os.Root, name string) (*os.File, int64, error) {
	f, err := file.OpenIn(root, name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}
