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

// ownScope is the scope of a Git repository or a bucket. Nothing but its own answers names its objects: they are the same identity's.
func (r *Reconciler) ownScope(ctx context.Context, adm *admission.Admitted, location string) cache.Scope {
	s := r.scopeOf(ctx, adm, location)
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
	s.Memory = &verify.Memory{Answers: p.r.memory(scope), Settled: p.locked != nil}
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

// readIndex returns the index of a repository. If the repository has tags, it is the one in the cache, unless the server has another
// one by now; the server is asked unless the run opens no connection. Else the index is downloaded. If the server's index still has
// the tag in known, the error is [helmrepo.ErrNotModified]; other errors have a reason.
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

// indexInCache opens an index in the cache, nil if it is damaged. If it is known where its charts are, nothing else of it is read: what
// reads more compares it with its digest.
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

// discardAltered removes bytes from the cache that are not those of their digest.
func (r *Reconciler) discardAltered(err error) {
	if altered, ok := errors.AsType[*digest.MismatchError](err); ok {
		r.cache.Discard(altered.Want)
	}
}

// downloadIndex gets the index into a temporary file that stays until the connections are closed, and keeps it for later runs. Its
// error has a reason: the failure may be the server's, the index's, or this machine's.
func (r *Reconciler) downloadIndex(ctx context.Context, repo *repository, known helmrepo.Tag) (*indexFile, error) {
	dst, err := r.newFile()
	if err != nil {
		return nil, status.DirectoryCreationFailed.Wrap(err)
	}
	file, err := r.downloadTo(ctx, dst, repo, known)
	if err != nil {
		_ = dst.Close() // nothing of it is needed
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
