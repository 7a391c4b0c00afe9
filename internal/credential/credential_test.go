package credential

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// input is the Secrets and accounts of an input, and how often each was asked for.
type input struct {
	secrets  map[string]*manifest.Secret
	accounts map[string]*manifest.ServiceAccount
	asked    []string
}

func (in *input) Secret(namespace, name string) (*manifest.Secret, error) {
	in.asked = append(in.asked, name)
	if s, ok := in.secrets[name]; ok {
		return s, nil
	}
	return nil, &manifest.NotFoundError{Kind: "Secret", Namespace: namespace, Name: name}
}

func (in *input) ServiceAccount(namespace, name string) (*manifest.ServiceAccount, error) {
	if a, ok := in.accounts[name]; ok {
		return a, nil
	}
	return nil, &manifest.NotFoundError{Kind: "ServiceAccount", Namespace: namespace, Name: name}
}

func secret(name, kind string, data ...string) *manifest.Secret {
	s := &manifest.Secret{Namespace: "apps", Name: name, Type: kind, Data: map[string][]byte{}}
	for i := 0; i < len(data); i += 2 {
		s.Data[data[i]] = []byte(data[i+1])
	}
	return s
}

const dockerConfig = "kubernetes.io/dockerconfigjson"

func inputOf(secrets ...*manifest.Secret) *input {
	in := &input{secrets: map[string]*manifest.Secret{}, accounts: map[string]*manifest.ServiceAccount{}}
	for _, s := range secrets {
		in.secrets[s.Name] = s
	}
	return in
}

func ref(name string) *meta.LocalObjectReference {
	if name == "" {
		return nil
	}
	return &meta.LocalObjectReference{Name: name}
}

// found lists problems and warnings with the field and the Secret that each is about.
func found(problems []Problem, warnings []Warning) []string {
	var list []string
	path := func(steps []any) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(steps), "[]"), " ", ".") }
	for _, p := range problems {
		list = append(list, fmt.Sprintf("problem at %s: %v", path(p.Path), p.Err))
	}
	for _, w := range warnings {
		list = append(list, fmt.Sprintf("warning %s at %s: %s", w.Code, path(w.Path), w.Text))
	}
	return list
}

func TestRepository(t *testing.T) {
	in := inputOf(
		secret("login", "Opaque", "username", "u", "password", "p"), secret("half", "Opaque", "username", "u"),
		secret("ca", "example.com/ca", "caFile", "garbage"), secret("empty", "Opaque", "token", "x"),
		secret("docker", dockerConfig, ".dockerconfigjson", "{}", "username", "u", "password", "p"),
	)
	const warning = "warning HS083 at spec.secretRef.name: credentials in secret 'apps/docker' of type kubernetes.io/dockerconfigjson are for OCI registries and not used for an HTTP repository"
	for _, tt := range []struct {
		name, secret, cert string
		want               []string
		useless            string
	}{
		{name: "none"},
		{name: "login", secret: "login"},
		{name: "half a login", secret: "half", want: []string{"problem at spec.secretRef.name: failed to detect authentication methods: secret 'apps/half': malformed basic auth - has 'username' but missing 'password'"}},
		{name: "no login", secret: "empty", useless: "Secret apps/empty has 'token': only 'username' and 'password', or TLS keys, are used, so it has no effect"},
		{name: "of a registry", secret: "docker", want: []string{warning}},
		{name: "both missing", secret: "no", cert: "nope", want: []string{
			`problem at spec.certSecretRef.name: failed to get TLS authentication secret 'apps/nope': secrets "nope" not found`,
			`problem at spec.secretRef.name: failed to get authentication secret 'apps/no': secrets "no" not found`,
		}},
		{name: "broken certificates first", secret: "half", cert: "ca", want: []string{
			"problem at spec.certSecretRef.name: failed to construct Helm client's TLS config: failed to parse CA certificate",
			"warning HS083 at spec.certSecretRef.name: secret 'apps/ca' in certSecretRef should be of type Opaque or kubernetes.io/tls",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := &sourcev1.HelmRepository{}
			obj.Namespace, obj.Spec.SecretRef, obj.Spec.CertSecretRef = "apps", ref(tt.secret), ref(tt.cert)
			in.asked = nil
			got := NewReader(in, Options{}).Server(t.Context(), obj)
			if list := found(got.Problems, got.Warnings); !slices.Equal(list, tt.want) {
				t.Errorf("got  %q\nwant %q", list, tt.want)
			}
			if got.Useless != tt.useless {
				t.Errorf("useless: %s", got.Useless)
			}
			if slices.Sort(in.asked); len(slices.Compact(in.asked)) != len(in.asked) {
				t.Errorf("a Secret was looked up twice: %v", in.asked)
			}
		})
	}
}

// Only this package decides how a missing Secret is replaced.
func TestMissing(t *testing.T) {
	obj := &sourcev1.HelmRepository{}
	obj.Namespace, obj.Spec.SecretRef, obj.Spec.Type = "apps", ref("no"), "oci"
	for missing, want := range map[string]string{"": "error", MissingFail: "error", MissingAnonymous: "none", MissingAmbient: "own"} {
		o := Options{Missing: missing}
		o.Own.Getenv = func(string) string { return "" }
		login := NewReader(inputOf(), o).Registry(obj)
		logins, err := login.Logins(t.Context(), "registry.test", auth.NewRoute(&url.URL{Scheme: "https", Host: "registry.test"}, nil, nil))
		got := map[bool]string{true: "own", false: "none"}[logins != nil]
		if login.Err() != nil {
			got = "error"
		}
		if err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", missing, got, err, want)
		}
	}
}

// Each problem and each warning of the many Secrets of an OCIRepository names the field that refers to it.
func TestArtifact(t *testing.T) {
	in := inputOf(secret("opaque", "Opaque", "username", "u"), secret("broken", dockerConfig, ".dockerconfigjson", "["),
		secret("good", dockerConfig, ".dockerconfigjson", `{"auths": {"registry.test": {"username": "u", "password": "p"}}}`))
	in.accounts["puller"] = &manifest.ServiceAccount{ImagePullSecrets: []string{"broken", "no"}}
	in.accounts["same"] = &manifest.ServiceAccount{ImagePullSecrets: []string{"opaque"}}
	const warning = ": Secret 'apps/opaque' of type Opaque cannot be used as a registry login: the type must be kubernetes.io/dockerconfigjson"
	for _, tt := range []struct {
		secret, account string
		want            []string
	}{
		{"good", "", nil},
		{"opaque", "puller", []string{
			"problem at spec.serviceAccountName: failed to get image pull secret for serviceaccount 'apps/puller': secret 'apps/no' not found",
			"problem at spec.serviceAccountName: Secret 'apps/broken': invalid JSON at byte 1",
			"warning HS083 at spec.secretRef.name" + warning,
		}},
		{"opaque", "same", []string{"warning HS083 at spec.secretRef.name" + warning, "warning HS083 at spec.serviceAccountName" + warning}},
		{"", "nobody", []string{"problem at spec.serviceAccountName: serviceaccount 'apps/nobody' not found"}},
	} {
		obj := &sourcev1.OCIRepository{}
		obj.Namespace, obj.Spec.SecretRef, obj.Spec.ServiceAccountName = "apps", ref(tt.secret), tt.account
		got := NewReader(in, Options{}).Artifact(obj)
		if list := found(got.Problems, got.Warnings); !slices.Equal(list, tt.want) {
			t.Errorf("%s, %s:\ngot  %q\nwant %q", tt.secret, tt.account, list, tt.want)
		}
	}
}
