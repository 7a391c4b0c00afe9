package reconcile

import (
	"cmp"
	"strings"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/lock"
)

// upToDate returns the revision of the artifact in storage if a tree of this revision would give the same artifact, else "".
func (p *reconciliation) upToDate(fingerprint func(revision string) string) string {
	if current := p.stored(); current != nil && p.reusable(fingerprint(current.Revision)) {
		return current.Revision
	}
	return ""
}

// settled reports whether the lock holds all data that the run needs of a tree: its revision, and the versions of its charts.
func (p *reconciliation) settled() bool {
	o := &p.r.o
	return o.Until == Choose && !o.checksSignatures() && !p.r.generates && p.locked != nil && o.Locked.Mode != LockedFirst && p.operated() == nil
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
