package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
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
func (r *Reconciler) loginsFor(ctx context.Context, obj *sourcev1.HelmRepository, host string, secret *manifest.Secret, ambient bool) (auth.Logins, error) {
	switch {
	case secret != nil:
		logins, err := auth.RegistrySecret(secret, host)
		if err != nil {
			return nil, fmt.Errorf("failed to configure OCI registry authentication: %w", err)
		}
		return logins, nil
	case obj.Spec.SecretRef == nil && obj.Spec.Provider != "" && obj.Spec.Provider != sourcev1.GenericOCIProvider:
		return r.logins.cloud(nil).Logins(ctx, obj.Spec.Provider, host)
	case ambient:
		return r.logins.ambient(), nil
	}
	return nil, nil
}

// logins are the logins of a run that belong to no object. Nothing of them is
// read or made before a repository asks for it.
type logins struct {
	ambient func() auth.Logins // the user's own
	// cloud has the machine's, for which a cloud is asked through a proxy, or nil for that of the environment.
	cloud func(*fetch.Proxy) *auth.Cloud
}

func newLogins(e Edges, registryConfig string) logins {
	return logins{
		ambient: sync.OnceValue(func() auth.Logins {
			return auth.NewAmbient(auth.AmbientOptions{Getenv: e.Getenv, RegistryConfig: registryConfig})
		}),
		cloud: clouds(e),
	}
}

// clouds are the logins of the machine by the proxy through which they are had, each once per run.
func clouds(e Edges) func(*fetch.Proxy) *auth.Cloud {
	var mu sync.Mutex
	byProxy := map[string]*auth.Cloud{}
	return func(proxy *fetch.Proxy) *auth.Cloud {
		mu.Lock()
		defer mu.Unlock()
		key := proxy.Key()
		if byProxy[key] == nil {
			byProxy[key] = auth.NewCloud(auth.CloudOptions{Dial: e.Dial, Getenv: proxy.Environment(e.Getenv), Now: e.Now})
		}
		return byProxy[key]
	}
}
