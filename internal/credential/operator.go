package credential

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// OperatorGit reads the Secret that a HelmRelease of Flux 1 names for an https URL. It needs a username and a password.
func (r *Reader) OperatorGit(namespace, name string) (*git.Login, error) {
	secret, err := r.Secret(namespace, &meta.LocalObjectReference{Name: name}, "failed to get secret")
	if err != nil {
		if r.Forgives(err) {
			return nil, nil
		}
		return nil, err
	}
	var found [2]string
	for i, key := range []string{"username", "password"} {
		value, ok := secret.Data[key]
		if !ok {
			return nil, finding.WithCode(finding.IncompleteLogin, fmt.Errorf("could not find %s key in secret %s", key, NameOf(secret)))
		}
		found[i] = string(value)
	}
	return git.NewLogin(git.Keys{Username: found[0], Password: found[1]}), nil
}
