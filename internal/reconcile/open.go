package reconcile

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/helmrepo"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// open opens a HelmRepository, once per run. Warnings about its Secrets are
// reported for the object itself.
func (r *Reconciler) open(ctx context.Context, adm *admission.Admitted) (*repository, error) {
	return r.opened.Do(ctx, keyOf(adm), func() (*repository, error) {
		repo := &repository{object: adm}
		if dir, ok := r.o.Directories[keyOf(adm)]; ok {
			return repo, r.openDirectory(repo, dir)
		}
		obj := adm.Typed.(*sourcev1.HelmRepository)
		if obj.Spec.Type == sourcev1.HelmRepositoryTypeOCI {
			return repo, r.openRegistry(ctx, repo, obj)
		}
		return repo, r.openServer(ctx, repo, obj)
	})
}

func (r *Reconciler) openDirectory(repo *repository, dir StandIn) error {
	opened, err := helmrepo.OpenDirectory(dir.Path)
	if err != nil {
		return status.Failed.Wrap(fmt.Errorf("failed to open the local directory of the repository: %w", err))
	}
	opened.Digests, opened.Limits, opened.Archives = r.o.digestPolicy(), r.limits, dir.Archives
	r.closers.add(opened)
	repo.indexed, repo.location = opened, "directory "+dir.Path
	repo.identity = strings.Join(append([]string{repo.location}, dir.Archives...), "\n")
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

func (r *Reconciler) openRegistry(ctx context.Context, repo *repository, obj *sourcev1.HelmRepository) error {
	login := r.secrets.Registry(obj)
	repo.warnSecrets(login.Warnings)
	if err := login.Err(); err != nil {
		return status.AuthenticationFailed.Wrap(err)
	}
	repo.scope = r.scopeOf(ctx, repo.object, bareURL(obj.Spec.URL))
	options := oci.Options{Identity: login.Identity, Insecure: obj.Spec.Insecure, Memory: r.memory(repo.scope)}
	// The URL is validated before the login, which needs its host.
	unnamed, err := r.registries.Namespace(obj.Spec.URL, options)
	if err != nil {
		return status.Failed.Stall(fmt.Errorf("failed to construct Helm client: %w", err))
	}
	options.Logins, err = login.Logins(ctx, unnamed.Host(), unnamed.Route())
	if err != nil {
		return status.AuthenticationFailed.Wrap(err)
	}
	repo.registry, err = r.registries.Namespace(obj.Spec.URL, options)
	if err != nil {
		return status.Failed.Stall(fmt.Errorf("failed to construct Helm client: %w", err))
	}
	repo.withheld = repo.registry.Withheld(ctx)
	repo.location = auth.RedactURL(obj.Spec.URL)
	repo.identity = fmt.Sprintf("%s %s %t", obj.Spec.URL, login.Identity.Key(), obj.Spec.Insecure)
	if options.Logins != nil {
		repo.identity += " " + options.Logins.Key()
	}
	return nil
}
