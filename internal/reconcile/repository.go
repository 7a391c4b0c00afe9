package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/index"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// indexed is a Helm repository with an index, on a server or in a directory.
type indexed interface {
	// Index writes the index to dst and returns the positions of the charts in it.
	Index(ctx context.Context, dst fetch.Sink, limit int64) (*index.Offsets, error)
	// Archive writes the archive of a candidate of that index to dst.
	Archive(ctx context.Context, c resolve.Candidate, dst fetch.Sink, limit int64) error
	// Provenance writes the provenance file of the archive to dst.
	Provenance(ctx context.Context, c resolve.Candidate, dst fetch.Sink) error
}

// repository is an opened HelmRepository with its location and credentials. Reconciler.open creates
// one per object and run. It does not change after that, and its connections end with the run.
type repository struct {
	object   *admission.Admitted
	indexed  indexed        // nil for a registry
	registry *oci.Namespace // nil without a registry
	tls      *auth.Identity
	basic    auth.Logins // user name and password of an HTTP repository, or nil
	// identity is equal, within one run, for two repositories with the same answers and the same timeout. It
	// contains no secret, but must not be stored: it has no meaning in another run.
	identity string
	// location is the redacted location of the repository, for fingerprints.
	location string
	scope    cache.Scope // of the repository in the cache
	withheld error       // the login of the environment that is withheld, or nil
	remarks
}

// newIndex is Index, except that a server's index is not downloaded if it still has the tag known.
func (repo *repository) newIndex(ctx context.Context, dst fetch.Sink, limit int64, known helmrepo.Tag) (*index.Offsets, helmrepo.Tag, error) {
	if tagged, ok := repo.indexed.(*helmrepo.Repository); ok {
		return tagged.NewIndex(ctx, dst, limit, known)
	}
	offsets, err := repo.indexed.Index(ctx, dst, limit)
	return offsets, "", err
}

// fingerprint is equal for indexes that were stored from the same location.
func (repo *repository) fingerprint() string {
	sum := sha256.Sum256([]byte(repo.location))
	return hex.EncodeToString(sum[:])
}

// open opens a HelmRepository, once per run. Warnings about its Secrets are
// reported for the object itself.
func (r *Reconciler) open(ctx context.Context, adm *admission.Admitted) (*repository, error) {
	return r.opened.Do(ctx, keyOf(adm), func() (*repository, error) {
		repo := &repository{object: adm}
		if dir, ok := r.o.Directories[keyOf(adm)]; ok {
			return repo, r.openDirectory(repo, dir, r.o.Archives[keyOf(adm)])
		}
		obj := adm.Typed.(*sourcev1.HelmRepository)
		if obj.Spec.Type == sourcev1.HelmRepositoryTypeOCI {
			return repo, r.openRegistry(ctx, repo, obj)
		}
		return repo, r.openServer(ctx, repo, obj)
	})
}

func (r *Reconciler) openDirectory(repo *repository, dir string, archives []string) error {
	opened, err := helmrepo.OpenDirectory(dir)
	if err != nil {
		return status.Failed.Wrap(fmt.Errorf("failed to open the local directory of the repository: %w", err))
	}
	opened.Digests, opened.Limits, opened.Archives = r.o.digestPolicy(), r.limits, archives
	r.closers.add(opened)
	repo.indexed, repo.location = opened, "directory "+dir
	repo.identity = strings.Join(append([]string{repo.location}, archives...), "\n")
	return nil
}

// openServer opens a repository on a server. It checks in source-controller's
// order: URL, credentials, client.
func (r *Reconciler) openServer(ctx context.Context, repo *repository, obj *sourcev1.HelmRepository) error {
	if strings.HasPrefix(obj.Spec.URL, sourcev1.HelmRepositoryTypeOCI+"://") {
		return status.URLInvalid.Wrap(validate.SchemeTypeError())
	}
	normal, err := fetch.NormalizeURL(obj.Spec.URL)
	if err != nil {
		return status.URLInvalid.Wrap(validate.InvalidURL(err))
	}
	if validate.NamesIndex(obj.Spec.URL) {
		repo.warnAt(finding.IndexInURL, validate.IndexInURL, "spec", "url")
	}
	login := r.secrets.Server(ctx, obj)
	repo.warnSecrets(login.Warnings)
	repo.warnWithheld(login.Withheld)
	if err := login.Err(); err != nil {
		return status.AuthenticationFailed.Wrap(err)
	}
	identity := login.Identity
	repo.tls = identity
	if username, password, ok := identity.Basic(); ok {
		repo.basic = auth.StaticLogin{Credential: auth.BasicCredential(username, password), Source: "the repository's Secret"}
	}
	repo.indexed, err = helmrepo.Open(r.client, normal, identity, helmrepo.Options{
		PassCredentials: obj.Spec.PassCredentials,
		Timeout:         obj.GetTimeout(),
		Digests:         r.o.digestPolicy(),
		Useless:         login.Useless,
	})
	if err != nil {
		return clientFailure(err)
	}
	repo.location = auth.RedactURL(normal)
	repo.scope = r.serverScope(ctx, repo.object, bareURL(normal))
	repo.identity = fmt.Sprintf("%s %s %t %s", normal, identity.Key(), obj.Spec.PassCredentials, obj.GetTimeout())
	return nil
}

// clientFailure returns a failure that stalls: a retry does not change the URL.
func clientFailure(err error) error {
	if is[*url.Error](err) {
		return status.URLInvalid.Wrap(validate.ClientError(err))
	}
	return status.Failed.Stall(validate.ClientError(err))
}

// warnWithheldBy reports the withheld login of a registry with the chart: a registry has no status.
func (w *remarks) warnWithheldBy(repo *repository) {
	if repo.withheld != nil {
		w.Warnings = append(w.Warnings, Warning{Code: finding.WithheldLogin, Text: repo.withheld.Error(), Err: repo.withheld})
	}
}
