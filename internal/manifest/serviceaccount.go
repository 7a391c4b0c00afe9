package manifest

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxPullSecrets is the limit of the imagePullSecrets of one account. Each is a Secret that has to be read.
const maxPullSecrets = 100

// ServiceAccount holds the part of an account that concerns pulling images. No other field is read.
type ServiceAccount struct {
	ImagePullSecrets []string // names of Secrets in the same namespace
}

// ServiceAccount returns the account of a reference.
func (s *Set) ServiceAccount(namespace, name string) (*ServiceAccount, error) {
	o, content, err := s.datum("ServiceAccount", namespace, name)
	if err != nil {
		return nil, err
	}
	return newServiceAccount(o, content)
}

func newServiceAccount(o *Object, content map[string]any) (*ServiceAccount, error) {
	const field = "imagePullSecrets"
	a := &ServiceAccount{}
	fail := func(msg string, path ...any) (*ServiceAccount, error) {
		p := &finding.Problem{Code: finding.ServiceAccount, Bare: fmt.Sprintf("ServiceAccount %s/%s: %s", o.Namespace, o.Name, msg)}
		p.Text = o.Position(path...).String() + ": " + p.Bare
		return nil, p
	}
	list, ok := content[field].([]any)
	if !ok && content[field] != nil {
		return fail(field+" must be a list", field)
	}
	if len(list) > maxPullSecrets {
		return fail(fmt.Sprintf("%s has more than %d entries", field, maxPullSecrets), field)
	}
	for i, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return fail(fmt.Sprintf("%s[%d] must be an object with a name", field, i), field, i)
		}
		switch name := fields["name"].(type) {
		case nil: // the API server takes it, the kubelet passes over it
		case string:
			if name != "" {
				a.ImagePullSecrets = append(a.ImagePullSecrets, name)
			}
		default:
			return fail(fmt.Sprintf("%s[%d].name must be a string", field, i), field, i, "name")
		}
	}
	return a, nil
}

// nameLabel is the label that the API server gives each Namespace.
const nameLabel = "kubernetes.io/metadata.name"

// NamespaceLabels returns the labels of a Namespace, or an error with the labels that each has if it is not in the input.
func (s *Set) NamespaceLabels(name string) (map[string]string, error) {
	labels := map[string]string{nameLabel: name}
	_, content, err := s.datum("Namespace", s.namespace, name)
	for key, value := range At[map[string]any](content, "metadata", "labels") {
		if text, ok := value.(string); ok && key != nameLabel {
			labels[key] = text
		}
	}
	return labels, err
}
