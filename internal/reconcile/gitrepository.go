package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type gitRepositoryKind struct {
	kindInfo
	goType[sourcev1.GitRepository, *sourcev1.GitRepository]
}

func newGitRepositoryKind() kind {
	return gitRepositoryKind{kindInfo: kindInfo{
		group:  sourcev1.GroupVersion.Group,
		name:   sourcev1.GitRepositoryKind,
		plural: "gitrepositories",
		short:  "gitrepo",
		source: true,
	}}
}

func (gitRepositoryKind) whole(typed any) any { return &typed.(*sourcev1.GitRepository).Status }

func (gitRepositoryKind) load(typed any) commonStatus {
	s := &typed.(*sourcev1.GitRepository).Status
	return commonStatus{s.ObservedGeneration, s.Conditions, s.Artifact, "", s.LastHandledReconcileAt}
}

func (gitRepositoryKind) save(typed any, c commonStatus) {
	s := &typed.(*sourcev1.GitRepository).Status
	s.ObservedGeneration, s.Conditions, s.Artifact, s.LastHandledReconcileAt = c.observedGeneration, c.conditions, c.artifact, c.handled
}

func (gitRepositoryKind) suspended(typed any) bool {
	return typed.(*sourcev1.GitRepository).Spec.Suspend
}

func (gitRepositoryKind) begin(p *reconciliation) objectSteps {
	return &gitReconciliation{treeReconciliation{reconciliation: p}, p.typed.(*sourcev1.GitRepository)}
}

type gitReconciliation struct {
	treeReconciliation
	obj *sourcev1.GitRepository
}

// choose fetches the files of the commit that the object asks for.
func (p *gitReconciliation) choose(ctx context.Context) (*remainder, error) {
	obj := p.obj
	p.out.Unverifiable = obj.Spec.Verification == nil
	// What is included is known before the fetch, which may find that nothing has
	// changed; but what is wrong with it is reported afterwards.
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
		return &fetch.Tree{Revision: p.entry.Revision}, nil
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
	if e := p.lockedTo(); e != nil && o.Verify == nil && p.storedRevision(e.Revision, func() (string, error) { return gitFingerprint(obj, e.Revision, includes) }) {
		return &fetch.Tree{Revision: e.Revision, Unchanged: true}, nil
	}
	if e := cmp.Or(p.lockedTo(), p.asked()); e != nil {
		o.Ref, o.Unless = lockedRef(o.Ref, e.Revision, o.Verify != nil || p.asked() != nil), ""
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

// settled reports whether the lock holds all that the run wants of a source of files: its revision, and the versions of its charts.
func (p *reconciliation) settled() bool {
	o := &p.r.o
	return o.Until == Choose && !o.checksSignatures() && !p.r.generates && p.lockedTo() != nil && o.Locked.Mode != LockedFirst && p.operated() == nil
}

func (p *gitReconciliation) gitOptions(ctx context.Context, obj *sourcev1.GitRepository) (git.Options, error) {
	o := git.Options{
		URL:               obj.Spec.URL,
		Timeout:           timeoutOf(obj.Spec.Timeout),
		RecurseSubmodules: obj.Spec.RecurseSubmodules,
		SkipTLSVerify:     p.r.o.SkipTLSVerify,
		SparseCheckout:    obj.Spec.SparseCheckout,
		Only:              p.only(obj),
		Memory:            p.r.memory(p.r.gitScope(ctx, p.adm, obj.Spec.URL)),
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

// loginFailure attaches the reason to a Secret that cannot be used.
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

// gitFailure attaches the reason to what became of a fetch.
func gitFailure(err error) error {
	var (
		url    *git.URLError
		empty  *git.EmptyError
		verify *git.VerificationError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &url):
		return status.URLInvalid.Wrap(err)
	case errors.As(err, &empty):
		return status.Reason("EmptyGitRepository").Stall(err)
	case errors.As(err, &verify):
		return verificationFailure(err)
	case fetch.AuthFailure(err):
		return status.AuthenticationFailed.Wrap(err)
	}
	return status.GitOperationFailed.Wrap(err)
}

// gitVerified reports the signatures that were checked in this run.
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

// gitFingerprint is equal for two artifacts with the same files.
func gitFingerprint(obj *sourcev1.GitRepository, revision string, includes []*included) (string, error) {
	var parts []any
	for _, i := range includes {
		parts = append(parts, i.spec, i.digest())
	}
	return fingerprintOf(revision, ignored(obj.Spec.Ignore), obj.Spec.RecurseSubmodules, obj.Spec.SparseCheckout, parts)
}

// observeGit records what the stored artifact was made with.
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

// shortSubject is as much of a commit's first line as source-controller shows.
func shortSubject(subject string) string {
	const most = 50
	if letters := []rune(subject); len(letters) > most {
		return string(letters[:most]) + "..."
	}
	return subject
}
