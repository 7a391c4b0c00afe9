package credential

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// Asking holds all inputs, except the URL, on which the answers to an object depend: a cache that outlives the process
// compares them. It contains secrets, and must be hashed at once.
type Asking struct {
	Way     []string // authorities, proxies, and whether anything is checked
	Login   []string // the login to the source
	Private bool     // a manifest or this machine has a login for it, whether or not the source requires one
}

// An asker holds the fields of an object that has a source.
type asker struct {
	url, namespace, provider   string
	login, certificates, proxy *meta.LocalObjectReference
	account                    string
	further                    []*meta.LocalObjectReference // of the service that issues the login
	borrows                    *meta.LocalObjectReference   // if it is missing, the login that Helm has counts
	settings                   []any
}

// Asking returns the settings and logins of a source. For a missing Secret they record that it is missing.
func (r *Reader) Asking(ctx context.Context, typed any) Asking {
	from := askerOf(typed)
	asking := Asking{
		Way:   []string{fmt.Sprint(append(from.settings, r.o.SkipTLSVerify)...)},
		Login: []string{from.provider, r.o.Missing, fmt.Sprint(r.o.Ambient, r.o.Own.Reach), r.o.Own.RegistryConfig, r.o.RepositoryConfig},
	}
	if u, err := auth.ParseURL(from.url); err == nil && u.User != nil {
		asking.Login, asking.Private = append(asking.Login, u.User.String()), true
	}
	asking.Private = asking.Private || ofCloud(from.provider) || len(from.further) > 0
	asking.read(r, from.namespace, from.login, "login")
	asking.read(r, from.namespace, from.certificates, "certificates")
	asking.read(r, from.namespace, from.proxy, "proxy")
	for _, ref := range from.further {
		asking.read(r, from.namespace, ref, "service")
	}
	if from.account != "" {
		asking.Login = append(asking.Login, "account "+from.account)
		if account, err := r.lookup.ServiceAccount(from.namespace, from.account); err == nil {
			for _, name := range account.ImagePullSecrets {
				asking.read(r, from.namespace, &meta.LocalObjectReference{Name: name}, "login")
			}
		}
	}
	if u, err := auth.ParseURL(from.url); err == nil && u.Scheme == sourcev1.HelmRepositoryTypeOCI {
		asking.own(r.MachineLogins(ctx, u.Host))
	} else if err == nil && r.o.Missing == MissingAmbient && r.lacks(from.namespace, from.borrows) {
		asking.own(auth.KnownToHelm(ctx, r.o.Own, r.o.RepositoryConfig, from.url))
	}
	return asking
}

// own adds this machine's logins for a source.
func (a *Asking) own(login []string) {
	if len(login) > 0 {
		a.Login, a.Private = append(append(a.Login, "machine"), login...), true
	}
}

// MachineLogins returns the entries of the user's files for a registry, if they may be used: a run without them, or with
// different ones, must not be served from the cache. It contains secrets, and must be hashed at once.
func (r *Reader) MachineLogins(ctx context.Context, host string) []string {
	if !r.o.Ambient && r.o.Missing != MissingAmbient {
		return nil
	}
	return r.own().Known(ctx, host)
}

// lacks reports whether a Secret is not in the input.
func (r *Reader) lacks(namespace string, ref *meta.LocalObjectReference) bool {
	if ref == nil {
		return false
	}
	_, err := r.lookup.Secret(namespace, ref.Name)
	return r.Forgives(err)
}

// read adds a Secret: authorities and proxies to Way, and all its data to Login.
func (a *Asking) read(r *Reader, namespace string, ref *meta.LocalObjectReference, role string) {
	if ref == nil {
		return
	}
	secret, err := r.lookup.Secret(namespace, ref.Name)
	if err != nil {
		a.Login = append(a.Login, role, "missing")
		return
	}
	var keys []string
	for key := range secret.Data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	a.Login = append(a.Login, role, secret.Type)
	for _, key := range keys {
		value := string(secret.Data[key])
		if role == "proxy" || key == "ca.crt" || key == "caFile" {
			a.Way = append(a.Way, role, key, value)
		} else {
			a.Private = true
		}
		a.Login = append(a.Login, key, value)
	}
}

func askerOf(typed any) asker {
	switch obj := typed.(type) {
	case *sourcev1.HelmRepository:
		return asker{
			url: obj.Spec.URL, namespace: obj.Namespace, provider: obj.Spec.Provider,
			login: obj.Spec.SecretRef, certificates: obj.Spec.CertSecretRef,
			settings: []any{obj.Spec.Insecure, obj.Spec.PassCredentials},
			borrows:  obj.Spec.SecretRef,
		}
	case *sourcev1.OCIRepository:
		return asker{
			url: obj.Spec.URL, namespace: obj.Namespace, provider: obj.Spec.Provider,
			login: obj.Spec.SecretRef, certificates: obj.Spec.CertSecretRef, proxy: obj.Spec.ProxySecretRef,
			account: obj.Spec.ServiceAccountName, settings: []any{obj.Spec.Insecure},
		}
	case *sourcev1.GitRepository:
		return asker{
			url: obj.Spec.URL, namespace: obj.Namespace, provider: obj.Spec.Provider,
			login: obj.Spec.SecretRef, proxy: obj.Spec.ProxySecretRef,
		}
	case *sourcev1.Bucket:
		from := asker{
			url: obj.Spec.Endpoint, namespace: obj.Namespace, provider: obj.Spec.Provider,
			login: obj.Spec.SecretRef, certificates: obj.Spec.CertSecretRef, proxy: obj.Spec.ProxySecretRef,
			account: obj.Spec.ServiceAccountName, settings: []any{obj.Spec.Provider, obj.Spec.Insecure, obj.Spec.Region},
		}
		if sts := obj.Spec.STS; sts != nil {
			from.settings = append(from.settings, sts.Provider, sts.Endpoint)
			from.further = []*meta.LocalObjectReference{sts.SecretRef, sts.CertSecretRef}
		}
		return from
	}
	return asker{}
}
