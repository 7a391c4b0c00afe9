package credential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Repository holds the resolved Secrets of a HelmRepository. They are read once, for all methods.
type Repository struct {
	// Identity is used for requests to the repository. It is anonymous if there are problems.
	Identity *auth.Identity
	// Useless describes the fault of a Secret without a login for an HTTP repository, "" if it has one.
	Useless string
	// Withheld is the reason for which the login of the environment is not used, or nil.
	Withheld error

	outcome

	reader   *Reader
	secret   *manifest.Secret
	provider string
	named    bool // a Secret, in secretRef
	missing  bool // without which the run continues
}

// Server reads the Secrets of a HelmRepository on an HTTP server. In place of a missing Secret it uses the login that
// Helm has for the URL, if an option allows that.
func (r *Reader) Server(ctx context.Context, obj *sourcev1.HelmRepository) *Repository {
	c, cert := r.repository(obj)
	if c.missing && r.o.Missing == MissingAmbient && len(c.Problems) == 0 {
		c.borrow(ctx, obj.Spec.URL)
		return c
	}
	if c.identify(c.secret, cert) && c.secret != nil && len(c.secret.Data["username"]) == 0 && !hasTLS(c.secret) {
		c.Useless = uselessText(c.secret)
	}
	return c
}

// Registry reads the Secrets of a HelmRepository of type oci. Its login is read when the host is known.
func (r *Reader) Registry(obj *sourcev1.HelmRepository) *Repository {
	c, cert := r.repository(obj)
	c.identify(withoutLogin(c.secret), cert)
	return c
}

// repository looks up the Secrets, and returns the one of certSecretRef.
func (r *Reader) repository(obj *sourcev1.HelmRepository) (*Repository, *manifest.Secret) {
	c := &Repository{reader: r, provider: obj.Spec.Provider, named: obj.Spec.SecretRef != nil}
	cert, err := r.Secret(obj.Namespace, obj.Spec.CertSecretRef, "failed to get TLS authentication secret")
	c.fail(err, certSecretRef())
	c.secret, err = r.Secret(obj.Namespace, obj.Spec.SecretRef, "failed to get authentication secret")
	if r.Forgives(err) {
		c.missing = true
		return c, cert
	}
	c.fail(err, secretRef())
	return c, cert
}

// identify makes an identity of both Secrets, and reports whether they can be used.
func (c *Repository) identify(login, cert *manifest.Secret) bool {
	identity, warnings, err := auth.FromSecrets(login, cert)
	for _, w := range warnings {
		c.Warnings = append(c.Warnings, Warning{finding.OddSecret, pathOf(w.Certificates), w.Text})
	}
	var broken *auth.SecretError
	if errors.As(err, &broken) {
		c.fail(err, pathOf(broken.Certificates))
		return false
	}
	c.Identity = c.reader.tls(identity)
	return true
}

func pathOf(certificates bool) []any {
	if certificates {
		return certSecretRef()
	}
	return secretRef()
}

// borrow uses the login that Helm itself has for the repository.
func (c *Repository) borrow(ctx context.Context, url string) {
	identity, source, err := auth.HelmRepositories(ctx, c.reader.o.Own, c.reader.o.RepositoryConfig, url)
	identity = c.reader.tls(identity)
	if source != "" {
		c.Warnings = append(c.Warnings, Warning{finding.BorrowedLogin, secretRef(), "the Secret is not in the input: using the login in " + source})
	}
	if base, err := auth.ParseURL(url); err == nil {
		c.Withheld = auth.TransportOptions{Identity: identity, Base: base}.Withheld()
	}
	c.Identity = identity
	c.fail(err, secretRef())
}

// Login returns the login to a registry in the Secret of secretRef. It is nil without a Secret.
func (c *Repository) Login(host string) (auth.Logins, error) {
	if c.secret == nil {
		return nil, nil
	}
	logins, err := auth.RegistrySecret(c.secret, host)
	if err != nil {
		return nil, fmt.Errorf("failed to configure OCI registry authentication: %w", err)
	}
	return logins, nil
}

// Logins returns the logins for the registry: the Secret's, else its replacement.
func (c *Repository) Logins(ctx context.Context, host string, to auth.Route) (auth.Logins, error) {
	if login, err := c.Login(host); login != nil || err != nil {
		return login, err
	}
	return c.reader.standIn(ctx, c.provider, c.named, c.missing, to)
}

// withoutLogin returns a Secret as an opaque one, to read the TLS settings beside a docker configuration, which has its
// own reader.
func withoutLogin(secret *manifest.Secret) *manifest.Secret {
	if secret == nil {
		return nil
	}
	opaque := *secret
	opaque.Type = "Opaque"
	return &opaque
}

func hasTLS(secret *manifest.Secret) bool {
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key", "caFile", "certFile", "keyFile"} {
		if len(secret.Data[key]) > 0 {
			return true
		}
	}
	return false
}

// uselessText names the keys of a Secret without a login, and the keys that it needs.
func uselessText(secret *manifest.Secret) string {
	const most = 5
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		if len(keys) == most {
			keys = append(keys, "…")
			break
		}
		keys = append(keys, "'"+key+"'")
	}
	has := "is empty"
	if len(keys) > 0 {
		has = "has " + strings.Join(keys, ", ")
	}
	return fmt.Sprintf("Secret %s/%s %s: only 'username' and 'password', or TLS keys, are used, so it has no effect", secret.Namespace, secret.Name, has)
}
