package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// loginSecret returns the Secret of the repository, nil if it names none, and
// whether the user's own logins stand in for it.
func (r *Reconciler) loginSecret(obj *sourcev1.HelmRepository) (secret *manifest.Secret, ambient bool, err error) {
	if obj.Spec.SecretRef == nil {
		return nil, r.o.Ambient, nil
	}
	secret, err = r.secret(obj.Namespace, obj.Spec.SecretRef, "failed to get authentication secret")
	var missing *manifest.NotFoundError
	if errors.As(err, &missing) && r.o.MissingSecrets != MissingSecretsFail {
		return nil, r.o.MissingSecrets == MissingSecretsAmbient, nil
	}
	return secret, false, err
}

// logins decides which credentials the registry may be shown: the Secret's, else
// those of the cloud that the repository names, else the user's own.
func (r *Reconciler) loginsFor(ctx context.Context, obj *sourcev1.HelmRepository, registry *oci.Namespace, secret *manifest.Secret, ambient bool) (auth.Logins, error) {
	switch {
	case secret != nil:
		logins, err := auth.RegistrySecret(secret, registry.Host())
		if err != nil {
			return nil, fmt.Errorf("failed to configure OCI registry authentication: %w", err)
		}
		return logins, nil
	case obj.Spec.SecretRef == nil && obj.Spec.Provider != "" && obj.Spec.Provider != sourcev1.GenericOCIProvider:
		return r.machineLogins(ctx, obj.Spec.Provider, registry.Route())
	case ambient:
		return r.logins.ambient(), nil
	}
	return nil, nil
}

// logins are the logins of a run that belong to no object. Nothing of them is
// read or made before a repository asks for it.
type logins struct {
	ambient func() auth.Logins // the user's own
	cloud   func() *auth.Cloud // the machine's
}

func newLogins(e Edges, o Options) logins {
	return logins{
		ambient: sync.OnceValue(func() auth.Logins { return auth.NewAmbient(ambientOptions(e.Getenv, o)) }),
		cloud: sync.OnceValue(func() *auth.Cloud {
			return auth.NewCloud(auth.CloudOptions{Dial: e.Dial, Getenv: e.Getenv, Now: e.Now, Reach: o.Reach})
		}),
	}
}

func ambientOptions(getenv func(string) string, o Options) auth.AmbientOptions {
	return auth.AmbientOptions{Getenv: getenv, RegistryConfig: o.RegistryConfig, Reach: o.Reach}
}

// machineLogins logs in to the registry of a cloud with the identity of the machine.
func (r *Reconciler) machineLogins(ctx context.Context, provider string, to auth.Route) (auth.Logins, error) {
	return r.logins.cloud().Logins(ctx, provider, to)
}
