package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type gitReconciliation struct {
	treeReconciliation
	obj *sourcev1.GitRepository
}

// perform fetches the files of the commit that spec.ref selects.
func (p *gitReconciliation) perform(ctx context.Context) error {
	obj := p.obj
	p.out.Unverifiable = obj.Spec.Verification == nil
	// The included artifacts are resolved before the fetch, which may find that
	// nothing has changed; but errors of them are reported afterwards.
	includes, includeErr := p.includes(ctx, obj)
	t, err := p.gitTree(ctx, obj, includes)
	if err != nil {
		return err
	}
	p.took(t)
	p.gitVerified(obj, t)
	if includeErr != nil {
		return includeErr
	}
	if err := p.copyIncludes(ctx, t, includes); err != nil {
		return err
	}
	kept := &fetched{Tree: t, fingerprint: gitFingerprint(obj, t.Revision, includes), stored: status.StoredRevision(t.Revision)}
	if t.Subject != "" {
		kept.announce = "stored artifact for commit '" + shortSubject(t.Subject) + "'"
	}
	if t.Root != nil && p.operated() != nil {
		kept.filter = operatedFiles()
	} else if t.Root != nil {
		if kept.filter, err = sourceFilter(ctx, t.Root, obj.Spec.Ignore); err != nil {
			return err
		}
	}
	if err := p.take(ctx, kept); err != nil || p.choosing() {
		return err
	}
	observeGit(obj, includes)
	return nil
}

func (p *gitReconciliation) gitTree(ctx context.Context, obj *sourcev1.GitRepository, includes []*included) (*fetch.Tree, error) {
	if dir, ok := p.r.o.Directories[p.key]; ok {
		if obj.Spec.Verification != nil {
			return nil, verificationFailure(errDirectoryUnsigned())
		}
		t, err := p.openLocalTree(ctx, dir.Path, git.WorktreeOptions{RecurseSubmodules: obj.Spec.RecurseSubmodules})
		if err == nil {
			err = git.KeepOnly(t.Root, obj.Spec.SparseCheckout)
		}
		return t, gitFailure(err)
	}
	if p.settled() {
		return &fetch.Tree{Revision: p.locked.Revision}, nil
	}
	o, err := p.gitOptions(ctx, obj)
	if err != nil {
		return nil, err
	}
	o.Unless = p.upToDate(func(revision string) string { return gitFingerprint(obj, revision, includes) })
	if p.locked != nil && o.Verify == nil && o.Unless != "" && o.Unless == p.locked.Revision {
		return &fetch.Tree{Revision: o.Unless, Unchanged: true}, nil
	}
	if e := cmp.Or(p.locked, p.asked); e != nil {
		o.Ref, o.Unless = lockedRef(o.Ref, e.Revision, o.Verify != nil || p.asked != nil), ""
	}
	if o.TempDir, err = p.r.temp.Dir(); err != nil {
		return nil, temporaryFailure(err)
	}
	t, err := git.Checkout(ctx, p.r.client, o)
	if err == nil {
		err = p.revisionAsLocked(t)
	}
	return t, gitFailure(err)
}

func (p *gitReconciliation) gitOptions(ctx context.Context, obj *sourcev1.GitRepository) (git.Options, error) {
	o := git.Options{
		URL:               obj.Spec.URL,
		Timeout:           timeoutOf(obj.Spec.Timeout),
		RecurseSubmodules: obj.Spec.RecurseSubmodules,
		SkipTLSVerify:     p.r.o.SkipTLSVerify,
		SparseCheckout:    obj.Spec.SparseCheckout,
		Only:              p.only(obj),
		Memory:            p.r.memory(p.r.ownScope(ctx, p.adm, bareURL(obj.Spec.URL))),
	}
	if ref := obj.Spec.Reference; ref != nil {
		o.Ref = git.Ref{Branch: ref.Branch, Tag: ref.Tag, SemVer: ref.SemVer, Name: ref.Name, Commit: ref.Commit}
	}
	if hr := p.operated(); hr != nil {
		return p.operatedOptions(hr, o)
	}
	var err error
	if o.Login, err = p.r.secrets.Git(obj); err != nil {
		return o, loginFailure(err)
	}
	if o.Proxy, err = p.r.secrets.Proxy(obj.Namespace, obj.Spec.ProxySecretRef); err != nil {
		return o, status.AuthenticationFailed.Wrap(err)
	}
	keys, err := p.r.secrets.GitKeys(obj)
	switch {
	case err != nil:
		return o, verificationFailure(err)
	case obj.Spec.Verification != nil:
		o.Verify = &git.Verification{Mode: string(obj.Spec.Verification.GetMode()), Keys: keys}
	}
	return o, nil
}

// operatedOptions returns the options with which the operator would fetch a repository.
func (p *gitReconciliation) operatedOptions(hr *operator.HelmRelease, o git.Options) (git.Options, error) {
	chart := &hr.Spec.Chart
	o.Ref = git.Ref{Any: chart.RefOr(operator.DefaultRef)}
	if !chart.ReadsSecret() {
		return o, nil
	}
	var err error
	o.Login, err = p.r.secrets.OperatorGit(cmp.Or(chart.SecretRef.Namespace, hr.Namespace), chart.SecretRef.Name)
	if err != nil {
		return o, loginFailure(err)
	}
	return o, nil
}

// only returns the paths of a repository that are enough to read its charts, nil for the
// whole tree. A tree that is stored, included or passed to dependencies is always whole.
func (p *gitReconciliation) only(obj *sourcev1.GitRepository) []string {
	paths := p.r.looked[p.key]
	o := &p.r.o
	if readsOutside(p.operated()) || p.r.generates {
		return nil
	}
	if o.Until == Fetch || o.VerifyDependencies || obj.Spec.RecurseSubmodules || len(obj.Spec.Include) > 0 || slices.Contains(paths, wholeTree) {
		return nil
	}
	return paths
}

// loginFailure attaches the reason to the error of a Secret that cannot be used.
func loginFailure(err error) error {
	const reason = status.Reason(sourcev1.InvalidProviderConfigurationReason)
	var provider *credential.ProviderError
	switch {
	case !errors.As(err, &provider):
		return status.AuthenticationFailed.Wrap(err)
	case provider.Stalled:
		return reason.Stall(err)
	}
	return reason.Wrap(err)
}

// gitFailure attaches the reason to the error of a fetch.
func gitFailure(err error) error {
	var verify *git.VerificationError
	switch {
	case err == nil:
		return nil
	case finding.CodeOf(err) == finding.InvalidURL:
		return status.URLInvalid.Wrap(err)
	case errors.Is(err, git.ErrEmpty):
		return status.Reason("EmptyGitRepository").Stall(err)
	case errors.As(err, &verify):
		return verificationFailure(err)
	case fetch.AuthFailure(err):
		return status.AuthenticationFailed.Wrap(err)
	}
	return status.GitOperationFailed.Wrap(err)
}

func (p *gitReconciliation) gitVerified(obj *sourcev1.GitRepository, t *fetch.Tree) {
	obj.Status.SourceVerificationMode = nil
	if obj.Spec.Verification == nil || t.Verified == "" {
		return
	}
	mode := obj.Spec.Verification.GetMode()
	obj.Status.SourceVerificationMode = &mode
	p.out.Verified = t.Verified
	p.result.Signed = &SignedRevision{t.Revision, t.Signatures}
}

// gitFingerprint returns a fingerprint that is equal for two artifacts with the same files.
func gitFingerprint(obj *sourcev1.GitRepository, revision string, includes []*included) string {
	var parts []any
	for _, i := range includes {
		parts = append(parts, i.spec, i.digest())
	}
	return fingerprintOf(revision, ignored(obj.Spec.Ignore), obj.Spec.RecurseSubmodules, obj.Spec.SparseCheckout, parts)
}

// observeGit records the spec fields and the included artifacts of the stored artifact.
func observeGit(obj *sourcev1.GitRepository, includes []*included) {
	obj.Status.ObservedIgnore = obj.Spec.Ignore
	obj.Status.ObservedRecurseSubmodules = obj.Spec.RecurseSubmodules
	obj.Status.ObservedSparseCheckout = slices.Clone(obj.Spec.SparseCheckout)
	obj.Status.ObservedInclude = slices.Clone(obj.Spec.Include)
	obj.Status.IncludedArtifacts = nil
	for _, i := range includes {
		obj.Status.IncludedArtifacts = append(obj.Status.IncludedArtifacts, i.artifact)
	}
}

// shortSubject returns the part of a commit's first line that source-controller shows.
func shortSubject(subject string) string {
	const most = 50
	if letters := []rune(subject); len(letters) > most {
		return string(letters[:most]) + "..."
	}
	return subject
}

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
