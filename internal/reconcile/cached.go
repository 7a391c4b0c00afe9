package reconcile

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
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

// missing returns the error for data that the cache does not hold, in a run that opens no connection.
func (r *Reconciler) missing(what string) error {
	return &fetch.OfflineError{What: what, Command: r.o.Online, Bundle: r.o.From}
}

func bareURL(raw string) string {
	u, err := auth.ParseURL(raw)
	if err != nil {
		return raw
	}
	u.User = nil
	return u.String()
}
