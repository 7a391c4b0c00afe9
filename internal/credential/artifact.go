package credential

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Artifact holds the resolved references to logins of an OCIRepository.
type Artifact struct {
	outcome

	reader  *Reader
	logins  *auth.PullSecrets // nil without logins
	named   bool              // it refers to some, although they may be of no use
	missing bool              // of which one is not in the input
	machine provider
}

// provider names the cloud and the identity with which an object logs in.
type provider struct {
	name    string
	account string // with whose identity, which only a cluster knows
}

// Artifact reads the Secret of spec.secretRef and the Secrets of the account in spec.serviceAccountName.
func (r *Reader) Artifact(obj *sourcev1.OCIRepository) *Artifact {
	c := &Artifact{reader: r, machine: provider{obj.Spec.Provider, obj.Spec.ServiceAccountName}}
	var secrets []*manifest.Secret
	paths := map[*manifest.Secret][]any{}
	add := func(name string, path []any, failed func(error) error) {
		c.named = true
		secret, err := r.lookup.Secret(obj.Namespace, name)
		switch {
		case r.Forgives(err):
			c.missing = true
		case err != nil:
			c.fail(failed(err), path)
		default:
			again := *secret // both references may name the same
			secrets, paths[&again] = append(secrets, &again), path
		}
	}
	if ref := obj.Spec.SecretRef; ref != nil {
		add(ref.Name, secretRef(), func(err error) error {
			return fmt.Errorf("failed to get secret '%s/%s': %w", obj.Namespace, ref.Name, err)
		})
	}
	for _, name := range c.imagePullSecrets(obj) {
		format := "failed to get image pull secret for serviceaccount '" + obj.Namespace + "/" + obj.Spec.ServiceAccountName + "': %w"
		add(name, serviceAccount(), func(err error) error {
			return withFlux(fmt.Errorf(format, err), "secret", obj.Namespace, name, format)
		})
	}
	c.read(secrets, paths)
	return c
}

// imagePullSecrets returns the names of the account's Secrets. Without an account the list is empty; the namespace's
// default account is not used either.
func (c *Artifact) imagePullSecrets(obj *sourcev1.OCIRepository) []string {
	name := obj.Spec.ServiceAccountName
	if name == "" {
		return nil
	}
	account, err := c.reader.lookup.ServiceAccount(obj.Namespace, name)
	switch {
	case c.reader.Forgives(err):
		c.named, c.missing = true, true
		return nil
	case err != nil:
		c.fail(withFlux(err, "serviceaccount", obj.Namespace, name, "%w"), serviceAccount())
		return nil
	}
	return account.ImagePullSecrets
}

func (c *Artifact) read(secrets []*manifest.Secret, paths map[*manifest.Secret][]any) {
	logins, warnings, errs := auth.NewPullSecrets(secrets)
	for _, err := range errs {
		c.fail(err, paths[err.Secret])
	}
	for _, w := range warnings {
		c.Warnings = append(c.Warnings, Warning{finding.OddSecret, paths[w.Secret], w.Text})
	}
	c.logins = logins
}

// Check reports, without a network, why the logins cannot be used for a repository: the field, and the error or the
// warning.
func (c *Artifact) Check(ctx context.Context, host, path string) (problem *Problem, warning *Warning) {
	if c.logins == nil {
		if ofCloud(c.machine.name) && c.machine.account != "" {
			return &Problem{serviceAccount(), ErrAccount}, nil
		}
		return nil, nil
	}
	login, err := c.logins.Login(ctx, host, path)
	if err != nil {
		problem = &Problem{[]any{"spec"}, err}
	}
	if login.Problem != nil {
		warning = &Warning{Code: finding.OddSecret, Path: []any{"spec"}, Text: login.Problem.Error()}
	}
	return problem, warning
}

// Logins returns the logins for the registry: the logins of the Secrets, else their replacement. The error is [ErrAccount] or
// that of a cloud.
func (c *Artifact) Logins(ctx context.Context, to auth.Route) (auth.Logins, error) {
	switch {
	case c.logins != nil:
		return c.logins, nil
	case ofCloud(c.machine.name) && !c.missing && c.machine.account != "":
		return nil, ErrAccount
	}
	logins, err := c.reader.standIn(ctx, c.machine.name, c.named, c.missing, to)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to get credential from %s: %w", c.machine.name, err)
	case logins == nil && len(c.Warnings) > 0:
		return auth.StaticLogin{Problem: errors.New(c.Warnings[0].Text)}, nil
	}
	return logins, nil
}

// ErrAccount reports an object that logs in to a cloud with the identity of a ServiceAccount, which only a cluster knows.
var ErrAccount error = &finding.Problem{
	Code:   finding.ServiceAccount,
	Text:   "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity feature gate in the controller",
	Advice: "helmsrc cannot use the cloud identity of a ServiceAccount: without spec.serviceAccountName, the identity of this machine is used; a Secret in spec.secretRef or an imagePullSecret of the account takes precedence",
}

// Certificates returns the TLS settings of an OCIRepository. With unverified and no certSecretRef, servers are not verified.
func (r *Reader) Certificates(obj *sourcev1.OCIRepository, unverified bool) (identity *auth.Identity, warnings []Warning, err error) {
	ref := obj.Spec.CertSecretRef
	switch {
	case ref == nil && unverified:
		return r.tls(identity.Unverified()), nil, nil
	case ref == nil:
		return r.tls(nil), nil, nil
	}
	secret, err := r.lookup.Secret(obj.Namespace, ref.Name)
	if err != nil {
		return nil, nil, withFlux(err, "secret", obj.Namespace, ref.Name, "%w")
	}
	identity, warned, err := auth.FromCertificates(secret)
	for _, w := range warned {
		warnings = append(warnings, Warning{finding.OddSecret, certSecretRef(), w.Text})
	}
	return r.tls(identity), warnings, err
}
