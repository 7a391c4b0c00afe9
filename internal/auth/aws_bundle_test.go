package auth_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// AWS_CA_BUNDLE, and ca_bundle of AWS's own configuration, name the authorities for the servers of AWS, in place of the
// system's. The connections stay those of the run.
func TestAWSBundle(t *testing.T) {
	const registry = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
	own, err := helmtest.NewCA("the authority of a company")
	if err != nil {
		t.Fatal(err)
	}
	bundle := func(t *testing.T, pem []byte) string { return write(t, string(pem), t.TempDir(), "bundle.pem") }
	variable := func(t *testing.T, pem []byte) { t.Setenv("AWS_CA_BUNDLE", bundle(t, pem)) }
	setting := func(t *testing.T, pem []byte) {
		t.Setenv("AWS_CONFIG_FILE", write(t, "[default]\nca_bundle = "+bundle(t, pem)+"\n", t.TempDir(), "config"))
	}
	bucket := func(t *testing.T, w *cloudWorld) error {
		o := w.options()
		o.Getenv = os.Getenv
		s, err := auth.MachineAWSStorage(o, auth.To("s3.amazonaws.com"), "eu-west-1", "")
		if err != nil {
			t.Fatal(err)
		}
		keys, err := s.Keys(t.Context())
		if err == nil && keys.Session != "role-session" {
			t.Errorf("session %q", keys.Session)
		}
		return err
	}
	login := func(t *testing.T, w *cloudWorld) error {
		_, err := w.cloud().Logins(t.Context(), "aws", auth.To(registry))
		return err
	}
	for name, c := range map[string]struct {
		set    func(*testing.T, []byte)
		pem    func(*cloudWorld) []byte
		server func(*cloudWorld) *helmtest.CA
		want   string // in the error
	}{
		"variable":                    {variable, func(*cloudWorld) []byte { return own.Cert }, func(*cloudWorld) *helmtest.CA { return own }, ""},
		"setting":                     {setting, func(*cloudWorld) []byte { return own.Cert }, func(*cloudWorld) *helmtest.CA { return own }, ""},
		"the system's authorities":    {variable, func(w *cloudWorld) []byte { return w.ca.Cert }, func(w *cloudWorld) *helmtest.CA { return w.ca }, ""},
		"no longer the system's":      {variable, func(*cloudWorld) []byte { return own.Cert }, func(w *cloudWorld) *helmtest.CA { return w.ca }, "certificate signed by unknown authority"},
		"the company's, not in it":    {variable, func(w *cloudWorld) []byte { return w.ca.Cert }, func(*cloudWorld) *helmtest.CA { return own }, "certificate signed by unknown authority"},
		"not a certificate is not it": {variable, func(*cloudWorld) []byte { return []byte("x") }, func(w *cloudWorld) *helmtest.CA { return w.ca }, "failed to load custom CA bundle PEM file"},
	} {
		for what, ask := range map[string]func(*testing.T, *cloudWorld) error{"bucket": bucket, "registry": login} {
			t.Run(what+", "+name, func(t *testing.T) {
				w := newCloudWorld(t)
				webIdentity(t)
				t.Setenv("AWS_MAX_ATTEMPTS", "1")
				c.set(t, c.pem(w))
				w.ca = c.server(w)
				w.serve(t, "sts.eu-west-1.amazonaws.com:443", stsServer(t))
				w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "ASIAROLE", "role-secret", "role-session"))
				if err := ask(t, w); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
			})
		}
	}
	t.Run("metadata server", func(t *testing.T) {
		w := newCloudWorld(t)
		variable(t, own.Cert)
		t.Setenv("AWS_DEFAULTS_MODE", "standard") // with which the library would make connections of its own
		w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPut:
				rw.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
				_, _ = rw.Write([]byte("imds-token"))
			case strings.HasSuffix(r.URL.Path, "/node-role"):
				_, _ = rw.Write([]byte(`{"Code":"Success","AccessKeyId":"ASIANODE","SecretAccessKey":"x","Token":"role-session","Expiration":"2099-01-01T00:00:00Z"}`))
			default:
				_, _ = rw.Write([]byte("node-role"))
			}
		})
		if err := bucket(t, w); err != nil {
			t.Error(err)
		}
	})
	t.Run("a redirect is not followed", func(t *testing.T) {
		w := newCloudWorld(t)
		webIdentity(t)
		variable(t, w.ca.Cert)
		elsewhere := w.serve(t, "away.test:443", stsServer(t))
		w.serve(t, "sts.eu-west-1.amazonaws.com:443", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "https://away.test/", http.StatusTemporaryRedirect)
		})
		if err := bucket(t, w); err == nil {
			t.Error("no error")
		}
		wantRequests(t, elsewhere, 0)
	})
	t.Run("a file that is not there", func(t *testing.T) {
		w := newCloudWorld(t)
		webIdentity(t)
		t.Chdir(t.TempDir()) // a long path would be taken for a secret
		t.Setenv("AWS_CA_BUNDLE", "none.pem")
		for _, err := range []error{bucket(t, w), login(t, w)} {
			if err == nil || !strings.Contains(err.Error(), "none.pem") {
				t.Errorf("error %v", err)
			}
		}
	})
}
