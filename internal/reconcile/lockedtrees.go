package reconcile

import (
	"cmp"
	"path"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/status"
)

// storedRevision reports whether the artifact in storage is the one that a locked revision would produce.
func (p *reconciliation) storedRevision(revision string, fingerprint func() (string, error)) bool {
	if current := p.stored(); current == nil || current.Revision != revision {
		return false
	}
	f, err := fingerprint()
	return err == nil && p.reusable(f)
}

// revisionAsLocked returns an error if a tree has another revision than the locked one. Otherwise it sets the revision
// to its form in the lock: the tree was fetched by its commit, not by the name of a branch or tag.
func (p *reconciliation) revisionAsLocked(t *fetch.Tree) error {
	e := cmp.Or(p.locked, p.asked)
	if e == nil {
		return nil
	}
	if revisionHash(t.Revision) != revisionHash(e.Revision) {
		p.r.closers.add(t)
		return moved("the revision", lock.Difference{Field: "revision", Locked: e.Revision, Now: t.Revision})
	}
	t.Revision = e.Revision
	return nil
}

// lockedRef returns a reference to the commit of a locked revision. With byName it keeps the name of a
// tag, because the signature may be on the tag.
func lockedRef(ref git.Ref, revision string, byName bool) git.Ref {
	at := strings.LastIndexByte(revision, '@')
	name, named := revision[:max(at, 0)], at > 0
	commit := revisionHash(revision)
	switch {
	case ref.Commit != "":
		return ref
	case ref.Name != "" && byName && !strings.HasPrefix(ref.Name, "refs/heads/"):
		return git.Ref{Name: ref.Name}
	case ref.Name != "":
		return git.Ref{Commit: commit}
	case (ref.SemVer != "" || ref.Tag != "") && named && byName:
		return git.Ref{Tag: name}
	case ref.SemVer != "" || ref.Tag != "":
		return git.Ref{Commit: commit}
	}
	return git.Ref{Branch: ref.Branch, Commit: commit}
}

func artifactPin(e *lock.Entry) Pin {
	return Pin{Source: PinRegistry, Version: e.Tag, URL: e.URL, Manifest: e.ManifestDigest, Revision: e.Revision}
}

// artifactAsLocked keeps the artifact in storage if it is the locked one and no signature must be verified.
func (p *ociReconciliation) artifactAsLocked(obj *sourcev1.OCIRepository, e *lock.Entry) bool {
	if p.r.o.checksSignatures() && (obj.Spec.Verify != nil || p.r.o.Keyring != nil || p.r.o.RequireVerification) {
		return false
	}
	if !p.storedRevision(e.Revision, func() (string, error) { return ociFingerprint(obj, e.Revision) }) {
		return false
	}
	pin := artifactPin(e)
	p.pinTo(pin)
	p.result.Resolution.take(pin)
	p.out.Unverifiable = obj.Spec.Verify == nil
	p.keptArtifact(e.Revision)
	return true
}

// treeAsLocked keeps the package in storage if it is the locked one, and reports only the locked version if the run needs no more.
// It returns an error for a tree of another revision than the locked one.
func (p *chartReconciliation) treeAsLocked(obj *sourcev1.HelmChart, from *sourceTree) (kept bool, err error) {
	e := p.locked
	if e == nil {
		return false, nil
	}
	if from.revision != e.Revision {
		return false, status.NotLocked.Wrap((&Judgement{Object: p.adm, Entry: e, Misfits: []Misfit{{
			Difference: lock.Difference{Field: "revision", Locked: e.Revision, Now: from.revision},
		}}}).problem())
	}
	build, stored := p.storedAsLocked(obj, e)
	switch {
	case stored && e.Package != "":
		p.unchanged(build)
	case p.settled():
		p.out.Seen = status.Build{Name: path.Base(e.Chart), Version: e.Version}.Seen()
	default:
		return false, nil
	}
	p.choseFromTree(from, e.Version)
	return true, nil
}
