package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type gitReconciliation struct {
	treeReconciliation
	obj *sourcev1.GitRepository
}

// choose fetches the files of the commit that spec.ref selects.
func (p *gitReconciliation) choose(ctx context.Context) (*remainder, error) {
	obj := p.obj
	p.out.Unverifiable = obj.Spec.Verification == nil
	// The included artifacts are resolved before the fetch, which may find that
	// nothing has changed; but errors of them are reported afterwards.
	includes, includeErr := p.includes(ctx, obj)
	t, err := p.gitTree(ctx, obj, includes)
	if err != nil {
		return nil, err
	}
	p.took(t)
	p.gitVerified(obj, t)
	if includeErr != nil {
		return nil, includeErr
	}
	if err := p.copyIncludes(ctx, t, includes); err != nil {
		return nil, err
	}
	kept := &fetched{Tree: t, stored: status.StoredRevision(t.Revision)}
	if t.Subject != "" {
		kept.announce = "stored artifact for commit '" + shortSubject(t.Subject) + "'"
	}
	if kept.fingerprint, err = gitFingerprint(obj, t.Revision, includes); err != nil {
		return nil, err
	}
	if t.Root != nil && p.operated() != nil {
		kept.filter = operatedFiles()
	} else if t.Root != nil {
		rules, err := tree.SourceRules(ctx, t.Root, ignored(obj.Spec.Ignore), tree.Options{})
		if err != nil {
			return nil, status.Reason("SourceIgnoreError").Wrap(fmt.Errorf("failed to load source ignore patterns from repository: %w", err))
		}
		kept.filter = rules.Choose
	}
	return p.remaining(kept, func() { observeGit(obj, includes) }), nil
}

func (p *gitReconciliation) gitTree(ctx context.Context, obj *sourcev1.GitRepository, includes []*included) (*fetch.Tree, error) {
	if dir, ok := p.r.o.Directories[p.key]; ok {
		if obj.Spec.Verification != nil {
			return nil, verificationFailure(errDirectoryUnsigned())
		}
		t, err := p.openLocalTree(ctx, dir, git.WorktreeOptions{RecurseSubmodules: obj.Spec.RecurseSubmodules})
		if err == nil {
			err = keepOnly(t, obj.Spec.SparseCheckout)
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
	if current := p.stored(); current != nil {
		fingerprint, err := gitFingerprint(obj, current.Revision, includes)
		if err != nil {
			return nil, err
		}
		if p.reusable(fingerprint) {
			o.Unless = current.Revision
		}
	}
	if e := p.locked; e != nil && o.Verify == nil && p.storedRevision(e.Revision, func() (string, error) { return gitFingerprint(obj, e.Revision, includes) }) {
		return &fetch.Tree{Revision: e.Revision, Unchanged: true}, nil
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

// settled reports whether the lock holds all data that the run needs of a tree: its revision, and the versions of its charts.
func (p *reconciliation) settled() bool {
	o := &p.r.o
	return o.Until == Choose && !o.checksSignatures() && !p.r.generates && p.locked != nil && o.Locked.Mode != LockedFirst && p.operated() == nil
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
func gitFingerprint(obj *sourcev1.GitRepository, revision string, includes []*included) (string, error) {
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

// keepOnly removes from the copy of a working tree all files that a sparse
// checkout of its commit would not hold. Without directories it removes nothing.
func keepOnly(t *fetch.Tree, directories []string) error {
	if len(directories) == 0 {
		return nil
	}
	s := &sparse{tree: t}
	for _, dir := range directories {
		name := inRoot(dir)
		if info, err := t.Root.Stat(name); err != nil || !info.IsDir() {
			return git.NoDirectory(dir)
		}
		s.wanted = append(s.wanted, name)
	}
	return s.prune(".")
}

type sparse struct {
	tree   *fetch.Tree
	wanted []string
}

func (s *sparse) prune(dir string) error {
	entries, err := fs.ReadDir(s.tree.Root.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case s.below(name):
		case e.IsDir() && s.above(name):
			err = s.prune(name)
		default:
			err = s.tree.Root.RemoveAll(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *sparse) below(name string) bool {
	return slices.ContainsFunc(s.wanted, func(w string) bool { return w == "." || name == w || strings.HasPrefix(name, w+"/") })
}

func (s *sparse) above(name string) bool {
	return slices.ContainsFunc(s.wanted, func(w string) bool { return strings.HasPrefix(w, name+"/") })
}

const wholeTree = "."

// generates reports whether the run generates artifacts: only the generation determines which files of a source it needs.
func generates(objects []*admission.Admitted) bool {
	return slices.ContainsFunc(objects, func(adm *admission.Admitted) bool {
		switch adm.Typed.(type) {
		case *swv1.ArtifactGenerator, *sourcev1.ExternalArtifact:
			return true
		}
		return false
	})
}

// lookedAt returns the paths of each GitRepository that the objects read. A repository
// that is not among the objects has no list: another repository includes it.
func lookedAt(objects []*admission.Admitted) map[store.Key][]string {
	paths := map[store.Key][]string{}
	for _, adm := range objects {
		if repo, ok := adm.Typed.(*sourcev1.GitRepository); ok {
			paths[keyOf(adm)] = append(paths[keyOf(adm)], tree.IgnoreFile)
			for _, include := range repo.Spec.Include {
				key := store.NewKey(sourcev1.GitRepositoryKind, adm.Object.Namespace, include.GitRepositoryRef.Name)
				paths[key] = append(paths[key], wholeTree)
			}
		}
	}
	for _, adm := range objects {
		obj, ok := adm.Typed.(*sourcev1.HelmChart)
		if !ok || obj.Spec.SourceRef.Kind != sourcev1.GitRepositoryKind {
			continue
		}
		key := store.NewKey(sourcev1.GitRepositoryKind, adm.Object.Namespace, obj.Spec.SourceRef.Name)
		if _, known := paths[key]; known {
			paths[key] = append(paths[key], chartPaths(obj.Spec.Chart)...)
		}
	}
	return paths
}

// chartPaths returns the path of a chart in a repository and of the ignore files
// that may exclude it from the artifact.
func chartPaths(chart string) []string {
	name := path.Clean("/" + filepath.ToSlash(chart))[1:]
	if name == "" {
		return []string{wholeTree}
	}
	paths := []string{name}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		paths = append(paths, path.Join(dir, tree.IgnoreFile))
	}
	return paths
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
