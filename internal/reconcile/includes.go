package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

// included is another GitRepository whose artifact is copied into this one.
type included struct {
	spec     sourcev1.GitRepositoryInclude
	source   *Result
	artifact *meta.Artifact // nil if none is stored
}

func (i *included) digest() string {
	if i.artifact == nil {
		return ""
	}
	return i.artifact.Digest
}

func (p *gitReconciliation) includes(ctx context.Context, obj *sourcev1.GitRepository) ([]*included, error) {
	var list []*included
	for _, spec := range obj.Spec.Include {
		name := spec.GitRepositoryRef.Name
		adm, err := p.r.inventory.Find(sourcev1.GitRepositoryKind, obj.Namespace, name)
		if err != nil {
			return nil, includeFailure("NotFound", fmt.Errorf("could not get resource for include '%s': %w", name, &inventory.UnavailableError{Kind: sourcev1.GitRepositoryKind, Name: name, Err: err}))
		}
		if cycle := p.r.inventory.IncludeCycle(obj.Namespace, obj.Name, name); cycle != nil {
			return nil, includeFailure("NoArtifact", noArtifact(name, cycle))
		}
		result := p.r.result(ctx, adm)
		if result.State == Interrupted {
			return nil, context.Cause(ctx)
		}
		i, artifact := &included{spec: spec, source: result}, result.Artifact()
		if artifact == nil {
			if _, err := result.tree(ctx); err != nil {
				return nil, includeFailure("NoArtifact", noArtifact(name, causeOf(result)))
			}
		} else {
			i.artifact = artifact.DeepCopy()
			i.artifact.URL = ""
		}
		list = append(list, i)
	}
	return list, nil
}

// includeFailure returns a failure that waits for another object, without a separate warning.
func includeFailure(reason status.Reason, err error) error {
	return &status.Failure{Type: sourcev1.IncludeUnavailableCondition, Reason: reason, Message: err.Error(), Requeue: true, Err: err}
}

func (p *gitReconciliation) copyIncludes(ctx context.Context, t *fetch.Tree, includes []*included) error {
	if t.Root == nil {
		return nil
	}
	for _, i := range includes {
		if err := p.copyInclude(ctx, t, i); err != nil {
			return err
		}
	}
	return nil
}

func (p *gitReconciliation) copyInclude(ctx context.Context, t *fetch.Tree, i *included) error {
	from, err := i.source.tree(ctx)
	if err != nil {
		return includeFailure("NoArtifact", err)
	}
	root, err := from.files(ctx)
	if err != nil {
		return err
	}
	name, to := inRoot(i.spec.GetFromPath()), inRoot(i.spec.GetToPath())
	if err := copyTree(ctx, t.Root, to, root, name, from.filter); err != nil {
		return status.Reason("CopyFailure").Wrap(fmt.Errorf("failed to copy '%s' include from %s to %s: %w",
			i.spec.GitRepositoryRef.Name, i.spec.GetFromPath(), i.spec.GetToPath(), err))
	}
	return nil
}

// inRoot returns a path relative to a root, which never leads out of it.
func inRoot(name string) string {
	if name = path.Clean("/" + name); name == "/" {
		return "."
	}
	return name[1:]
}

// copyTree copies a directory of a source into a tree. It replaces no existing
// file.
func copyTree(ctx context.Context, into *os.Root, to string, from *os.Root, name string, filter tree.Filter) error {
	src, err := from.OpenRoot(name)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := into.MkdirAll(to, 0o700); err != nil {
		return err
	}
	dst, err := into.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	read, write := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := tree.Archive(ctx, write, src, tree.Options{Filter: below(name, filter)})
		write.CloseWithError(err)
		packed <- err
	}()
	err = tree.Unpack(ctx, read, dst, tree.Limits{})
	read.CloseWithError(errors.New("not wanted any more"))
	return errors.Join(err, <-packed)
}

func below(dir string, filter tree.Filter) tree.Filter {
	if filter == nil {
		return nil
	}
	return func(name string, isDir bool) tree.Choice { return filter(path.Join(dir, name), isDir) }
}
