package reconcile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// flatMode is the mode of the copied files, before the umask.
const flatMode fs.FileMode = 0o666

type flatFile struct {
	name   string // NAME-VERSION.tgz
	result *Result
}

// Flatten copies the charts that results have in storage into dir, as NAME-VERSION.tgz: the charts of HelmCharts, and of
// OCIRepositories that hold one. It creates the directory and writes each file atomically. An existing file is left alone
// if its bytes are the same, and replaced if they differ. Two charts with the same name and version but different bytes
// are a finding, and neither is copied.
func Flatten(st *store.Store, results []*Result, dir string, l chart.Limits) []finding.Finding {
	f := &flattening{store: st, limits: l}
	files := f.plan(results)
	if len(files) == 0 {
		return f.failures
	}
	root, err := openFlat(dir)
	if err != nil {
		f.fail(nil, err)
		return f.failures
	}
	defer root.Close()
	scratch := store.Scratch{Parent: dir, Hidden: true} // the next run removes the files of a killed run
	for _, file := range files {
		if err := f.copy(root, &scratch, file); err != nil {
			f.fail(file.result.Object.Object, err)
		}
	}
	if err := scratch.Close(); err != nil {
		f.fail(nil, err)
	}
	return f.failures
}

func openFlat(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, artifactsMode); err != nil {
		return nil, err
	}
	return file.OpenRoot(dir)
}

// artifactsMode is the mode of the directory, before the umask.
const artifactsMode fs.FileMode = 0o777

type flattening struct {
	store    *store.Store
	limits   chart.Limits
	failures []finding.Finding
}

func (f *flattening) fail(obj *manifest.Object, err error) {
	f.failures = append(f.failures, validate.New(obj, finding.Storage, fmt.Sprintf(finding.FlatFailed, err), "", manifest.Excerpt{}))
}

// plan returns the files to write, each once, in the order of the results.
func (f *flattening) plan(results []*Result) []flatFile {
	var files []flatFile
	at, clashed := map[string]int{}, map[string]bool{}
	for _, r := range results {
		name, err := f.nameOf(r)
		if err != nil {
			f.fail(r.Object.Object, err)
		}
		i, known := at[name]
		switch {
		case name == "" || clashed[name]:
		case known:
			clashed[name] = f.conflict(files[i], r)
		default:
			at[name] = len(files)
			files = append(files, flatFile{name, r})
		}
	}
	return slices.DeleteFunc(files, func(file flatFile) bool { return clashed[file.name] })
}

// nameOf returns the file name for the chart that a result has in storage, or "" if it has no chart.
func (f *flattening) nameOf(r *Result) (string, error) {
	if r.Artifact() == nil || r.State != Ready && r.State != Suspended {
		return "", nil
	}
	switch r.Object.Object.Kind {
	case sourcev1.HelmChartKind:
		return path.Base(r.Artifact().Path), nil
	case sourcev1.OCIRepositoryKind:
	default:
		return "", nil
	}
	in, err := f.store.OpenArtifact(r.Artifact().Path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	metadata, _, err := chart.Check(in, f.limits.Named(path.Base(r.Artifact().Path)))
	if err != nil {
		return "", nil // not a chart: a registry also holds manifests and other artifacts
	}
	return path.Base(metadata.Name) + "-" + path.Base(metadata.Version) + ".tgz", nil
}

func (f *flattening) conflict(first flatFile, other *Result) bool {
	same, err := f.equal(first.result, other)
	switch {
	case err != nil:
		f.fail(other.Object.Object, err)
	case !same:
		f.failures = append(f.failures, validate.New(other.Object.Object, finding.Storage,
			fmt.Sprintf(finding.FlatClash, first.name, first.result.Object.Object),
			"fetch them in separate runs, with separate directories", manifest.Excerpt{}))
	}
	return err != nil || !same
}

// equal compares the bytes of two artifacts, whose digests may use different algorithms.
func (f *flattening) equal(a, b *Result) (bool, error) {
	if a.Artifact().Digest == b.Artifact().Digest {
		return true, nil
	}
	in, err := f.store.OpenArtifact(b.Artifact().Path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	return holds(in, digest.Digest(a.Artifact().Digest))
}

// holds reports whether the bytes of a reader match a digest.
func holds(r io.Reader, want digest.Digest) (bool, error) {
	_, err := io.Copy(io.Discard, digest.NewReader(r, want))
	if is[*digest.MismatchError](err) {
		return false, nil
	}
	return err == nil, err
}

// copy writes a file to the scratch directory, verifies it with the digest of the artifact, and renames it into dir.
func (f *flattening) copy(root *os.Root, scratch *store.Scratch, file flatFile) error {
	want, err := digest.Parse(file.result.Artifact().Digest)
	if err != nil || isThere(root, file.name, want) {
		return err
	}
	in, err := f.store.OpenArtifact(file.result.Artifact().Path)
	if err != nil {
		return err
	}
	defer in.Close()
	at, err := scratch.Dir()
	if err != nil {
		return err
	}
	temp := path.Join(filepath.Base(at), file.name)
	if err := writeFlat(root, temp, in, want); err != nil {
		return fmt.Errorf("%s: %w", file.name, err)
	}
	return root.Rename(temp, file.name)
}

func writeFlat(root *os.Root, name string, in io.Reader, want digest.Digest) error {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, flatMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, digest.NewReader(in, want))
	if is[*digest.MismatchError](err) {
		err = errors.New("the artifact was altered while it was copied")
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// isThere reports whether root has a regular file with that name and digest.
func isThere(root *os.Root, name string, want digest.Digest) bool {
	if fi, err := root.Lstat(name); err != nil || !fi.Mode().IsRegular() {
		return false
	}
	in, err := root.Open(name)
	if err != nil {
		return false
	}
	defer in.Close()
	same, _ := holds(in, want)
	return same
}
