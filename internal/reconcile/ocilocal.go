package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// localArtifact stores a directory or an archive instead of the artifact in the
// registry. Its revision is the digest of the content, as for an artifact
// requested by digest.
func (p *ociReconciliation) localArtifact(ctx context.Context, obj *sourcev1.OCIRepository, name string) error {
	p.result.Resolution = &Resolution{Chart: "directory " + name}
	if obj.Spec.Verify != nil {
		return verificationFailure(errDirectoryUnsigned())
	}
	p.out.Unverifiable = true
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return status.OCIPullFailed.Wrap(fmt.Errorf("failed to read '%s': %w", name, withoutPath(err)))
	case info.IsDir():
		return p.localTree(ctx, obj, name)
	case !strings.HasSuffix(name, ".tgz") && !strings.HasSuffix(name, ".tar.gz"):
		return status.OCIPullFailed.Wrap(finding.WithHint(
			fmt.Errorf("failed to read '%s': it is neither a directory nor a .tgz", name), finding.SourceTakes,
		))
	}
	return p.localLayer(ctx, obj, name)
}

// withoutPath returns the error without the file name, which the message already has.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// localLayer stores an archive unchanged, as the operation copy does.
func (p *ociReconciliation) localLayer(ctx context.Context, obj *sourcev1.OCIRepository, name string) error {
	archive, err := file.Open(name)
	if err != nil {
		return status.OCIPullFailed.Wrap(fmt.Errorf("failed to read '%s': %w", name, withoutPath(err)))
	}
	p.r.closers.add(archive) // it is read again when it is stored
	w := digest.NewWriter(godigest.SHA256)
	n, err := io.Copy(w, io.LimitReader(archive, p.r.limits.Archive+1))
	switch {
	case err != nil:
		return status.OCIPullFailed.Wrap(fmt.Errorf("failed to read '%s': %w", name, withoutPath(err)))
	case n > p.r.limits.Archive:
		return status.OCIPullFailed.Wrap(fmt.Errorf("'%s' has more than the limit of %d bytes", name, p.r.limits.Archive))
	}
	return p.keepLocal(ctx, obj, w.Digest().String(), func(pending io.Writer) error {
		_, err := io.Copy(pending, io.NewSectionReader(archive, 0, n))
		return err
	})
}

// localTree stores the files of a directory. A chart is moved into a directory
// with its name, as in the archives that Helm pushes.
func (p *ociReconciliation) localTree(ctx context.Context, obj *sourcev1.OCIRepository, dir string) error {
	t, err := p.openWorktree(ctx, dir, git.WorktreeOptions{Plain: true})
	if err != nil {
		return status.OCIPullFailed.Wrap(err)
	}
	p.took(t)
	if _, err := t.Root.Lstat("Chart.yaml"); err == nil {
		if err := nest(t.Root, obj.Name); err != nil {
			return temporaryFailure(err)
		}
	}
	filter, err := sourceFilter(ctx, t.Root, obj.Spec.Ignore)
	if err != nil {
		return err
	}
	return p.keepLocal(ctx, obj, t.Revision, func(pending io.Writer) error {
		return tree.Archive(ctx, pending, t.Root, tree.Options{Filter: filter})
	})
}

// nest moves everything below root into a new directory there.
func nest(root *os.Root, name string) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	// The temporary name avoids a conflict with a file of the chart.
	const moved = ".helmsrc-chart"
	if err := root.Mkdir(moved, 0o700); err != nil {
		return err
	}
	for _, n := range names {
		if err := root.Rename(n, moved+"/"+n); err != nil {
			return err
		}
	}
	return root.Rename(moved, name)
}

// keepLocal stores the output of write, unless storage has an artifact of the revision.
func (p *ociReconciliation) keepLocal(ctx context.Context, obj *sourcev1.OCIRepository, revision string, write func(io.Writer) error) error {
	p.pinTo(Pin{Source: PinDirectory, Revision: revision})
	p.result.Resolution.Version, p.result.Resolution.Digest = "", revision
	if current := p.stored(); current == nil || current.Revision != revision {
		p.out.Seen = status.NewDigest(revision, p.result.Resolution.Chart)
	}
	return p.take(ctx, revision, fingerprintOf("local", revision, obj.Spec.Ignore), func(context.Context) error {
		return p.storing(func(pending *store.Pending) error {
			if err := write(pending); err != nil {
				return unsaved(unsavedTree, err)
			}
			return p.keepArtifact(obj, pending, revision, nil, unsavedTree)
		})
	})
}
