package reconcile

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// Kinds of answers that the cache keeps.
const (
	cachedIndex      = "index"
	cachedProvenance = "provenance"
)

// scopeOf returns the cache scope of an object: its source, without login, and the identity that requests it. Manifests
// from outside get only cached answers to their own login: the reach of this machine's logins is part of the identity,
// and a URL or proxy that a manifest chose cannot make its source another one.
func (r *Reconciler) scopeOf(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	asking := r.secrets.Asking(ctx, adm.Typed)
	shown := adm.Object.ConcealText(auth.RedactURL(location))
	s := r.cache.Scope(append([]string{location}, asking.Way...), append([]string{fmt.Sprint(r.o.Ambient, r.o.Reach)}, asking.Login...), shown)
	s.Private = asking.Private
	s.Named = r.o.Reach != auth.ReachNowhere
	return s
}

// serverScope returns the scope of an index and its archives. A login that may read the index may not be allowed to read
// every archive, so answers to a login are kept for that login only.
func (r *Reconciler) serverScope(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	s := r.scopeOf(ctx, adm, location)
	s.Named = s.Named && !s.Private
	return s
}

// elsewhereScope returns the scope of an archive that an index keeps in a registry: this machine's login for the registry may
// have been sent.
func (r *Reconciler) elsewhereScope(ctx context.Context, s cache.Scope, urls []string) cache.Scope {
	for _, raw := range urls {
		if u, err := auth.ParseURL(raw); err == nil && u.Scheme == sourcev1.HelmRepositoryTypeOCI {
			s = r.cache.With(s, r.secrets.MachineLogins(ctx, u.Host))
		}
	}
	return s
}

// online returns get, or in an offline run a function that fails: the cache does not hold the bytes.
func (r *Reconciler) online(what string, get blob.Get) blob.Get {
	if !r.o.Offline {
		return get
	}
	return func(context.Context, fetch.Sink, int64) error { return r.missing(what) }
}

// ownScope returns the scope of a Git repository or a bucket. Only its own answers name its objects, so they belong to its identity.
func (r *Reconciler) ownScope(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	s := r.scopeOf(ctx, adm, location)
	s.Named = false
	return s
}

// memory returns the cached answers of registries and Git servers.
func (r *Reconciler) memory(scope cache.Scope) cache.Memory {
	m := cache.Memory{Cache: r.cache, Scope: scope}
	if r.o.Offline {
		m.Missing = r.missing
	}
	return m
}

// signer looks for a signature. For a locked source, a cached answer of the registry is enough if the signature verifies with it.
func (p *reconciliation) signer(ctx context.Context, s verify.Subject, scope cache.Scope, look run) (*verify.Signer, error) {
	s.Memory = &verify.Memory{Answers: p.r.memory(scope), Settled: p.locked != nil}
	signer, err := look(ctx, s)
	if err == nil || p.r.o.Offline || !s.Memory.Used() {
		return signer, err
	}
	s.Memory = &verify.Memory{Answers: s.Memory.Answers}
	return look(ctx, s)
}

// missing returns the error for data that the cache does not hold, in a run that opens no connection.
func (r *Reconciler) missing(what string) error {
	return &fetch.OfflineError{What: what, Command: r.o.Online, Bundle: r.o.From}
}

// keptIndex holds the data that the cache has for an index besides its bytes.
type keptIndex struct {
	Tag helmrepo.Tag `json:"tag,omitempty"`
}

// readIndex returns the index of a repository. If the server sends tags, the cached index is used unless the server has a newer one;
// an offline run does not ask the server. Otherwise the index is downloaded. If the server's index still has the tag known, the
// error is [helmrepo.ErrNotModified]; all other errors have a reason.
func (r *Reconciler) readIndex(ctx context.Context, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	_, server := repo.indexed.(*helmrepo.Repository)
	if server && known != "" && r.o.Offline {
		return nil, helmrepo.ErrNotModified
	}
	if !server || known != "" {
		return r.downloadIndex(ctx, repo, known)
	}
	var kept keptIndex
	d, found := r.cache.Answer(repo.scope, cachedIndex, "", &kept)
	found = found && (kept.Tag != "" || r.o.Offline) && r.cache.Holds(repo.scope, d)
	if found && !r.o.Offline {
		if file, err := r.downloadIndex(ctx, repo, kept.Tag); !errors.Is(err, helmrepo.ErrNotModified) {
			return file, err
		}
	}
	missing := "the index of "
	if found {
		if file := r.indexInCache(repo, d); file != nil {
			file.tag = kept.Tag
			return file, nil
		}
		missing = "an undamaged index of "
	}
	if r.o.Offline {
		return nil, indexFailure(r.missing(missing + repo.location))
	}
	return r.downloadIndex(ctx, repo, "")
}

// indexInCache opens an index in the cache, and returns nil if it is damaged. If the positions of its charts are known, it reads only
// them: later reads of other parts verify the digest.
func (r *Reconciler) indexInCache(repo *repository, d digest.Digest) *indexFile {
	view, size, ok := r.cache.View(repo.scope, d)
	if !ok {
		return nil
	}
	if size > r.o.IndexMax {
		_ = view.Close()
		return nil
	}
	offsets, ok := r.positions(repo, d, size)
	if !ok {
		var err error
		if offsets, err = rescan(view, size, d); err != nil {
			_ = view.Close()
			r.discardAltered(err)
			return nil
		}
		r.keepPositions(repo, d, offsets)
	}
	r.files.add(view)
	return &indexFile{offsets: offsets, digest: d, file: view, size: size, cached: true}
}

// discardAltered removes an entry from the cache if err reports that its bytes do not match its digest.
func (r *Reconciler) discardAltered(err error) {
	if altered, ok := errors.AsType[*digest.MismatchError](err); ok {
		r.cache.Discard(altered.Want)
	}
}

// downloadIndex downloads the index into a temporary file that stays open until the run closes its connections, and caches it. Its
// error has a reason: the server, the index or this machine may have failed.
func (r *Reconciler) downloadIndex(ctx context.Context, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	dst, err := r.newFile()
	if err != nil {
		return nil, status.DirectoryCreationFailed.Wrap(err)
	}
	file, err := r.downloadTo(ctx, dst, repo, known)
	if err != nil {
		_ = dst.Close() // the file is not used
		return nil, err
	}
	r.files.add(dst)
	return file, nil
}

func (r *Reconciler) downloadTo(ctx context.Context, dst *blob.File, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	sink := &fetch.WatchedSink{Sink: dst}
	offsets, tag, err := repo.newIndex(ctx, sink, r.o.IndexMax, known)
	switch {
	case errors.Is(err, helmrepo.ErrNotModified):
		return nil, err
	case err != nil && sink.Err != nil:
		return nil, unsaved(unsavedIndex, sink.Err)
	case err != nil:
		return nil, indexFailure(err)
	}
	if err := offsets.Check(dst); err != nil {
		return nil, invalidIndex(err)
	}
	if r.cache != nil && repo.scope.Source != "" {
		scope := repo.scope
		scope.Item = "index.yaml"
		r.cache.Keep(scope, dst.Digest(), dst.Size(), dst.Section())
		r.cache.KeepAnswer(repo.scope, cachedIndex, "", dst.Digest(), keptIndex{tag})
		r.keepPositions(repo, dst.Digest(), offsets)
	}
	return &indexFile{offsets: offsets, tag: tag, digest: dst.Digest(), file: dst, size: dst.Size()}, nil
}

func indexFailure(err error) error {
	if invalid, ok := errors.AsType[*helmrepo.IndexError](err); ok {
		return invalidIndex(invalid.Err)
	}
	err = fmt.Errorf("failed to fetch Helm repository index: failed to cache index to temporary file: %w", err)
	if fetch.AuthFailure(err) {
		return status.AuthenticationFailed.Wrap(err)
	}
	return status.Failed.Wrap(err)
}

func invalidIndex(err error) error {
	return status.IndexationFailed.Wrap(fmt.Errorf("failed to load Helm repository from index YAML: failed to load index: %w", err))
}

func bareURL(raw string) string {
	u, err := auth.ParseURL(raw)
	if err != nil {
		return raw
	}
	u.User = nil
	return u.String()
}
