// Package credential turns the Secrets that an object refers to into values: identities, logins, proxies and keys. It
// looks them up in the input and decides what replaces a missing Secret; it opens no connection, except for the login
// at a cloud.
package credential

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// Lookup resolves the references of an object. The error for a missing object is a *manifest.NotFoundError. It is safe
// for concurrent use.
type Lookup interface {
	Secret(namespace, name string) (*manifest.Secret, error)
	ServiceAccount(namespace, name string) (*manifest.ServiceAccount, error)
}

// The values of Options.Missing.
const (
	MissingFail      = "fail"
	MissingAmbient   = "ambient"
	MissingAnonymous = "anonymous"
)

// Options configure the credentials that may be used besides the Secrets of the input.
type Options struct {
	// Missing selects the replacement of a Secret that is not in the input: one of the constants above; "" is MissingFail.
	Missing string
	// Ambient allows the user's own logins for objects that name no Secret.
	Ambient bool
	// Own holds the places of the user's own logins, Machine the options for the identity of the machine.
	Own     auth.AmbientOptions
	Machine auth.CloudOptions
	// SkipTLSVerify turns off the verification of server certificates: see auth.Identity.SkipVerification.
	SkipTLSVerify bool
	// RepositoryConfig is the path of Helm's repositories.yaml, "" for the usual path.
	RepositoryConfig string
}

// Reader reads the Secrets that the objects of a run refer to. It keeps no part of the Secrets. NewReader makes it,
// once per run or validation; its fields do not change, and it is safe for concurrent use.
type Reader struct {
	lookup Lookup
	o      Options
	own    func() *auth.Ambient // of the user; read when the first repository requires a login
	cloud  func() *auth.Cloud   // of the machine
}

// NewReader returns a reader of the Secrets in the input. With zero options it uses the input alone.
func NewReader(lookup Lookup, o Options) *Reader {
	return &Reader{
		lookup: lookup,
		o:      o,
		own:    sync.OnceValue(func() *auth.Ambient { return auth.NewAmbient(o.Own) }),
		cloud:  sync.OnceValue(func() *auth.Cloud { return auth.NewCloud(o.Machine) }),
	}
}

// Warning describes a fault in a reference of an object that does not keep it from being used.
type Warning struct {
	Code finding.Code
	Path []any // of the field that names the Secret
	Text string
}

// A Problem reports a reference that cannot be used.
type Problem struct {
	Path []any // of the field
	Err  error
}

// outcome holds the warnings and problems about the references of an object.
type outcome struct {
	Warnings []Warning
	// Problems are in the order in which a controller would find them.
	Problems []Problem
}

// Err returns the error of the first problem, or nil.
func (o *outcome) Err() error {
	if len(o.Problems) == 0 {
		return nil
	}
	return o.Problems[0].Err
}

func (o *outcome) fail(err error, path []any) {
	if err != nil {
		o.Problems = append(o.Problems, Problem{path, err})
	}
}

// The fields that name Secrets and accounts.
func secretRef() []any      { return []any{"spec", "secretRef", "name"} }
func certSecretRef() []any  { return []any{"spec", "certSecretRef", "name"} }
func serviceAccount() []any { return []any{"spec", "serviceAccountName"} }

// Secret returns the Secret that a reference names, nil for no reference. The error begins with the text of failed.
func (r *Reader) Secret(namespace string, ref *meta.LocalObjectReference, failed string) (*manifest.Secret, error) {
	if ref == nil {
		return nil, nil
	}
	secret, err := r.lookup.Secret(namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("%s '%s/%s': %w", failed, namespace, ref.Name, err)
	}
	return secret, nil
}

// Forgiving reports whether the run continues without Secrets that are missing from the input.
func (r *Reader) Forgiving() bool { return r.o.Missing != MissingFail && r.o.Missing != "" }

// Forgives reports whether an error is about a missing Secret without which the run continues.
func (r *Reader) Forgives(err error) bool {
	var missing *manifest.NotFoundError
	return r.Forgiving() && errors.As(err, &missing)
}

// tls returns an identity with the options' setting for the verification of servers.
func (r *Reader) tls(id *auth.Identity) *auth.Identity {
	if r.o.SkipTLSVerify {
		return id.SkipVerification()
	}
	return id
}

// Own returns the user's own logins to registries if they may be used without a Secret, or else nil.
func (r *Reader) Own() auth.Logins {
	if !r.o.Ambient {
		return nil
	}
	return r.own()
}

// standIn selects the logins that a registry may receive without a Secret: the logins of the cloud that the object
// names, else the user's own. Flux uses no cloud for an object whose Secret is missing.
func (r *Reader) standIn(ctx context.Context, provider string, named, missing bool, to auth.Route) (auth.Logins, error) {
	switch {
	case ofCloud(provider) && !missing:
		return r.cloud().Logins(ctx, provider, to)
	case missing && r.o.Missing == MissingAmbient, !named && r.o.Ambient:
		return r.own(), nil
	}
	return nil, nil
}

func ofCloud(provider string) bool { return provider != "" && provider != "generic" }

// withFlux returns the error of a missing object with Flux's text, if it differs from the API server's.
func withFlux(err error, what, namespace, name, format string) error {
	var missing *manifest.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	return fmt.Errorf(format, &finding.Problem{Text: fmt.Sprintf("%s '%s/%s' not found", what, namespace, name), Err: missing})
}

// NameOf returns the name of a Secret for messages.
func NameOf(s *manifest.Secret) string { return s.Namespace + "/" + s.Name }
