package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// The kinds of answers that the cache keeps.
const (
	cachedIndex      = "index"
	cachedProvenance = "provenance"
)

// scopeOf says to the cache which source an object has, and what it asks it with. The place has no login in it. Manifests
// of strangers are served only what they have brought the login for themselves: how far the logins of this machine go is
// part of the identity, and no way that a stranger chose makes a source of another one.
func (r *Reconciler) scopeOf(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	asking := r.secrets.Asking(ctx, adm.Typed)
	shown := adm.Object.ConcealText(auth.RedactURL(location))
	s := r.cache.Scope(append([]string{location}, asking.Way...), append([]string{fmt.Sprint(r.o.Ambient, r.o.Reach)}, asking.Login...), shown)
	s.Private = asking.Private
	s.Named = r.o.Reach != auth.ReachNowhere
	return s
}

// serverScope is the scope of an index and its archives: not everyone who may read the one may read the others. So what a
// login brought is its own.
func (r *Reconciler) serverScope(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	s := r.scopeOf(ctx, adm, location)
	s.Named = s.Named && !s.Private
	return s
}

// elsewhereScope is the scope of an archive that an index keeps in a registry: the login that this machine has there may have
// taken part.
func (r *Reconciler) elsewhereScope(ctx context.Context, s cache.Scope, urls []string) cache.Scope {
	for _, raw := range urls {
		if u, err := auth.ParseURL(raw); err == nil && u.Scheme == sourcev1.HelmRepositoryTypeOCI {
			s = r.cache.With(s, r.secrets.MachineLogins(ctx, u.Host))
		}
	}
	return s
}

// online is a download, in a run that may open connections.
func (r *Reconciler) online(what string, get blob.Get) blob.Get {
	if !r.o.Offline {
		return get
	}
	return func(context.Context, fetch.Sink, int64) error { return r.missing(what) }
}

// gitScope is the scope of a Git repository. Its objects are served to the same identity only.
func (r *Reconciler) gitScope(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	s := r.scopeOf(ctx, adm, bareURL(location))
	s.Named = false
	return s
}

// bucketScope is the scope of a bucket. Nothing but its own answers names its objects: they are the same identity's.
func (r *Reconciler) bucketScope(ctx context.Context, adm *admission.Admitted, obj *sourcev1.Bucket) cache.Scope {
	s := r.scopeOf(ctx, adm, bucketURL(obj))
	s.Named = false
	return s
}

// memory keeps the answers of registries and Git servers.
func (r *Reconciler) memory(scope cache.Scope) cache.Memory {
	m := cache.Memory{Cache: r.cache, Scope: scope}
	if r.o.Offline {
		m.Missing = r.missing
	}
	return m
}

// signer looks for a signature. Of what is locked, what the registry was asked before will do, as long as it is a yes.
func (p *reconciliation) signer(ctx context.Context, s verify.Subject, scope cache.Scope, look run) (*verify.Signer, error) {
	s.Memory = &verify.Memory{Answers: p.r.memory(scope), Settled: p.lockedTo() != nil}
	signer, err := look(ctx, s)
	if err == nil || p.r.o.Offline || !s.Memory.Used() {
		return signer, err
	}
	s.Memory = &verify.Memory{Answers: s.Memory.Answers}
	return look(ctx, s)
}

// missing is what the cache does not have, in a run that opens no connection.
func (r *Reconciler) missing(what string) error {
	return &fetch.OfflineError{What: what, Command: r.o.Online, Bundle: r.o.From}
}

// keptIndex is what the cache knows of an index beside its bytes.
type keptIndex struct {
	Tag helmrepo.Tag `json:"tag,omitempty"`
}

// indexThroughCache asks the server whether the index in the cache is still its own, and writes that one to dst if it is. It
// asks nothing if the run opens no connection.
func (r *Reconciler) indexThroughCache(ctx context.Context, repo *repository, dst indexSink) (*index.Offsets, helmrepo.Tag, error) {
	var kept keptIndex
	d, found := r.cache.Answer(repo.scope, cachedIndex, "", &kept)
	found = found && (kept.Tag != "" || r.o.Offline) && r.cache.Holds(repo.scope, d)
	if !found && r.o.Offline {
		return nil, "", r.missing("the index of " + repo.location)
	}
	if found && !r.o.Offline {
		offsets, tag, err := r.newIndex(ctx, repo, dst, kept.Tag)
		if !errors.Is(err, helmrepo.ErrNotModified) {
			return offsets, tag, err
		}
	}
	if found {
		if offsets, err := r.loadIndex(repo, d, dst); err == nil {
			return offsets, kept.Tag, nil
		} else if r.o.Offline {
			return nil, "", r.missing("an undamaged index of " + repo.location)
		}
	}
	return r.newIndex(ctx, repo, dst, "")
}

// loadIndex writes an index from the cache, and reads it; or lends it, and reads where its charts are.
func (r *Reconciler) loadIndex(repo *repository, d digest.Digest, dst indexSink) (*index.Offsets, error) {
	if err := dst.Reset(); err != nil {
		return nil, err
	}
	if offsets, ok := r.lendIndex(repo, d, dst); ok {
		return offsets, nil
	}
	if !r.copyCached(repo, d, dst) {
		return nil, errors.New("the index is not in the cache")
	}
	if offsets, ok := r.positions(repo, d, dst.Size()); ok {
		return offsets, nil
	}
	offsets, err := index.Scan(sectionOf(dst, dst.Size()))
	if err == nil && offsets.Check(dst) == nil {
		r.keepPositions(repo, d, offsets)
	}
	return offsets, err
}

// copyCached writes an index from the cache. Where the sink computes the same digest, it is computed once.
func (r *Reconciler) copyCached(repo *repository, d digest.Digest, dst indexSink) bool {
	if d.Algorithm() != dst.Digest().Algorithm() {
		return r.cache.Load(repo.scope, d, r.o.IndexMax, dst)
	}
	file, size, ok := r.cache.View(repo.scope, d)
	if !ok || size > r.o.IndexMax {
		return false
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(dst, file); err != nil {
		return false
	}
	if dst.Digest() != d {
		r.cache.Discard(d)
		return false
	}
	return true
}

// newIndex downloads an index, and keeps it for later runs.
func (r *Reconciler) newIndex(ctx context.Context, repo *repository, dst indexSink, known helmrepo.Tag) (*index.Offsets, helmrepo.Tag, error) {
	offsets, tag, err := repo.newIndex(ctx, dst, r.o.IndexMax, known)
	if err == nil && r.cache != nil && repo.scope.Source != "" && offsets.Check(dst) == nil {
		scope := repo.scope
		scope.Item = "index.yaml"
		r.cache.Keep(scope, dst.Digest(), dst.Size(), sectionOf(dst, dst.Size()))
		r.cache.KeepAnswer(repo.scope, cachedIndex, "", dst.Digest(), keptIndex{tag})
		r.keepPositions(repo, dst.Digest(), offsets)
	}
	return offsets, tag, err
}

func bareURL(raw string) string {
	u, err := auth.ParseURL(raw)
	if err != nil {
		return raw
	}
	u.User = nil
	return u.String()
}
