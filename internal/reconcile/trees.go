package reconcile

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
	"github.com/helmsrc/helmsrc/internal/work"
)

func (t *sourceTree) files(ctx context.Context) (*os.Root, error) {
	if t.root != nil {
		return t.root, nil
	}
	return t.unpack(ctx)
}

// unpack unpacks a stored artifact into a scratch directory of the run.
func (r *Reconciler) unpack(ctx context.Context, artifact string) (*os.Root, error) {
	from, err := r.store.OpenArtifact(artifact)
	if err != nil {
		return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to open source artifact: %w", err))
	}
	defer from.Close()
	root, err := r.scratch()
	if err != nil {
		return nil, status.Failed.Wrap(fmt.Errorf("failed to create temporary working directory: %w", err))
	}
	if err := tree.Unpack(ctx, from, root, tree.Limits{}); err != nil {
		return nil, status.Failed.Wrap(fmt.Errorf("artifact untar error: %w", err))
	}
	return root, nil
}

// scratch returns an empty directory that is removed when the run ends.
func (r *Reconciler) scratch() (*os.Root, error) {
	root, err := r.temporaryRoot()
	if err == nil {
		r.closers.add(root)
	}
	return root, err
}

// temporaryRoot returns an empty directory, which must be closed before the run ends.
func (r *Reconciler) temporaryRoot() (*os.Root, error) {
	parent, err := r.temp.Dir()
	if err != nil {
		return nil, err
	}
	return newRoot(parent)
}

// newRoot returns a new directory below parent.
func newRoot(parent string) (*os.Root, error) {
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return nil, err
	}
	return file.OpenRoot(dir)
}

// fetched is a tree that is not stored yet.
type fetched struct {
	*fetch.Tree
	filter      tree.Filter // selects its files; nil keeps all
	fingerprint string
	stored      *status.Observation
	announce    string // for the event; "" for the message of stored
}

// treeReconciliation is the common part of the reconciliations of Git repositories and buckets.
type treeReconciliation struct {
	*reconciliation
	fetched  *sourceTree // the fetched tree, if charts may use it
	unpacked work.Memo[struct{}, *os.Root]
}

// take stores a tree, or compares it with the stored one in a run that only chooses.
func (p *treeReconciliation) take(ctx context.Context, t *fetched) error {
	pin := p.r.treePin(p.adm, t.Revision)
	p.pinTo(pin)
	if !t.Unchanged {
		p.fetched = &sourceTree{root: t.Root, filter: t.filter, revision: t.Revision, time: t.Time, pin: pin}
	}
	current := p.stored()
	same := current != nil && current.Revision == t.Revision
	switch {
	case t.Unchanged:
		p.keptTree(t)
		return nil
	case same && (p.choosing() || p.reusable(t.fingerprint)):
		p.fetched.digest = current.Digest
		p.keptTree(t)
		return nil
	case !same:
		p.out.Seen = &status.Observation{Reason: status.NewRevision, Message: "new upstream revision '" + t.Revision + "'"}
	}
	if p.choosing() {
		return nil
	}
	if err := p.archiveTree(ctx, t); err != nil {
		p.fetched = nil // charts may only use a stored tree
		return err
	}
	return nil
}

func (r *Reconciler) treePin(adm *admission.Admitted, revision string) Pin {
	if _, local := r.o.Directories[keyOf(adm)]; local {
		return Pin{Source: PinDirectory, Revision: revision}
	}
	switch obj := adm.Typed.(type) {
	case *sourcev1.GitRepository:
		return Pin{Source: PinGit, URL: auth.RedactURL(obj.Spec.URL), Revision: revision}
	case *sourcev1.Bucket:
		return Pin{Source: PinBucket, URL: auth.RedactURL(obj.Spec.Endpoint) + "/" + obj.Spec.BucketName, Revision: revision}
	}
	return Pin{Revision: revision}
}

func (p *treeReconciliation) keptTree(t *fetched) {
	p.out.Reused, p.out.Stored, p.out.Announce = true, t.stored, t.announce
	p.status.artifact = p.prev.Artifact
}

// archiveTree stores the tree as source-controller does.
func (p *treeReconciliation) archiveTree(ctx context.Context, t *fetched) error {
	return p.storing(func(pending *store.Pending) error {
		if err := tree.Archive(ctx, pending, t.Root, tree.Options{Filter: t.filter}); err != nil {
			return unsaved(unsavedTree, err)
		}
		p.fetched.digest = pending.Digest().String()
		if p.isStored(pending, t.Revision) {
			p.fingerprint = t.fingerprint
			p.keptTree(t)
			return nil
		}
		var metadata map[string]string
		if !t.Time.IsZero() {
			metadata = map[string]string{metadataTime: t.Time.UTC().Format(time.RFC3339)}
		}
		if err := p.commit(pending, revisionHash(t.Revision)+".tar.gz", t.Revision, metadata, unsavedTree); err != nil {
			return err
		}
		p.fingerprint, p.out.Stored, p.out.Announce = t.fingerprint, t.stored, t.announce
		return nil
	})
}

// revisionHash returns the part of a revision that identifies the content: 1234
// for main@sha1:1234.
func revisionHash(revision string) string {
	if i := strings.LastIndexAny(revision, ":"); i >= 0 {
		return revision[i+1:]
	}
	return revision[strings.LastIndex(revision, "/")+1:]
}

// openWorktree opens a local directory that replaces a source.
func (p *reconciliation) openWorktree(ctx context.Context, dir string, o git.WorktreeOptions) (*fetch.Tree, error) {
	o.SkipDirs = []string{p.r.store.Dir()}
	o.Getenv = p.r.getenv
	var err error
	if o.TempDir, err = p.r.temp.Dir(); err != nil {
		return nil, fmt.Errorf("failed to create temporary working directory: %w", err)
	}
	return git.OpenWorktree(ctx, dir, o)
}

// took registers a fetched tree: it is closed when the run ends, and its warnings are reported.
func (p *reconciliation) took(t *fetch.Tree) {
	p.r.closers.add(t)
	p.warnEach(finding.MissingSubmodule, t.Warnings)
	p.warnEach(finding.Unread, t.Unread)
}

// timeoutOf returns spec.timeout, for which the API has a default.
func timeoutOf(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// sourceFilter returns the filter of spec.ignore and of the files .sourceignore below a root.
func sourceFilter(ctx context.Context, root *os.Root, patterns *string) (tree.Filter, error) {
	rules, err := tree.SourceRules(ctx, root, ignored(patterns), tree.Options{})
	if err != nil {
		return nil, status.Reason("SourceIgnoreError").Wrap(fmt.Errorf("failed to load source ignore patterns from repository: %w", err))
	}
	return rules.Choose, nil
}

func ignored(patterns *string) string {
	if patterns == nil {
		return ""
	}
	return *patterns
}

// inRoot returns a path relative to a root, which never leads out of it.
func inRoot(name string) string {
	if name = path.Clean("/" + name); name == "/" {
		return "."
	}
	return name[1:]
}

func below(dir string, filter tree.Filter) tree.Filter {
	if filter == nil {
		return nil
	}
	return func(name string, isDir bool) tree.Choice { return filter(path.Join(dir, name), isDir) }
}

// tree returns the tree that was fetched in this run, else that of the stored artifact.
func (p *treeReconciliation) tree(context.Context) (*sourceTree, error) {
	if p.fetched != nil {
		return p.fetched, nil
	}
	artifact := p.result.Artifact()
	if artifact == nil || p.r.store.Verify(artifact.Path, artifact.Digest) != nil {
		return nil, p.result.nothing()
	}
	t := &sourceTree{revision: artifact.Revision, digest: artifact.Digest, unpack: p.unpack, pin: p.r.treePin(p.adm, artifact.Revision)}
	t.time, _ = time.Parse(time.RFC3339, artifact.Metadata[metadataTime]) // the zero time without one
	return t, nil
}

// unpack unpacks the stored artifact into a scratch directory of the run, when the first
// chart needs the files: none does if nothing has changed.
func (p *treeReconciliation) unpack(ctx context.Context) (*os.Root, error) {
	return p.unpacked.Do(ctx, struct{}{}, func() (*os.Root, error) { return p.r.unpack(ctx, p.result.Artifact().Path) })
}

// revisionLength is how many characters of a commit or digest are added to a version.
const revisionLength = 12

// openLocalTree opens the replacement of a GitRepository or a Bucket: a directory, or the archive of an artifact.
func (p *treeReconciliation) openLocalTree(ctx context.Context, name string, o git.WorktreeOptions) (*fetch.Tree, error) {
	info, err := os.Stat(name)
	if err != nil || info.IsDir() || !strings.HasSuffix(name, ".tar.gz") {
		return p.openWorktree(ctx, name, o)
	}
	root, err := p.r.scratch()
	if err != nil {
		return nil, temporaryFailure(err)
	}
	archive, err := file.Open(name)
	if err != nil {
		return nil, status.ReadOperationFailed.Wrap(err)
	}
	defer archive.Close()
	if err := tree.Unpack(ctx, archive, root, tree.Limits{}); err != nil {
		return nil, status.ReadOperationFailed.Wrap(fmt.Errorf("failed to unpack '%s': %w", name, err))
	}
	return p.openWorktree(ctx, root.Name(), git.WorktreeOptions{Plain: true})
}
