package credential

import (
	"fmt"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func azureClient(more ...string) map[string]string {
	data := map[string]string{"tenantId": helmtest.AzureTenant, "clientId": helmtest.AzureClient, "authorityHost": "https://login.test/"}
	for i := 0; i < len(more); i += 2 {
		data[more[i]] = more[i+1]
	}
	return data
}

func TestAzureSecret(t *testing.T) {
	const half = "invalid 'key' secret data: requires a 'clientId' or 'accountKey' field, a combination of 'tenantId', 'clientId' and 'clientSecret', or 'tenantId', 'clientId' and 'clientCertificate'"
	for _, v := range []struct {
		name, endpoint string
		data           map[string]string
		want           string
	}{
		{"empty", "", map[string]string{}, half},
		{"tenant alone", "", map[string]string{"tenantId": "t"}, half},
		{"no subdomain", "https://blob.test", map[string]string{"accountKey": "YQ=="}, "failed to create shared credential from 'key' Secret data: expected 'blob.test' to be a subdomain"},
		{"no base64", "", map[string]string{"accountKey": "s3cret!"}, "failed to create shared credential from 'key' Secret data: 'accountKey' is not in base64"},
		{"no query", "", map[string]string{"sasKey": "sig=s3cret%zz"}, "unable to parse SAS token: 'sasKey' is not a URL query"},
		{"no certificate", "", azureClient("clientCertificate", "s3cret"), "failed to create token credential from 'key' Secret: failed to parse client certificates: 'clientCertificate' is neither PEM nor PKCS #12 with a key that 'clientCertificatePassword' opens"},
		{"authority over plain HTTP", "", azureClient("clientSecret", "s3cret", "authorityHost", "http://login.test"), "failed to create token credential from 'key' Secret: 'authorityHost' is not an https URL"},
		{"machine with a client ID", "", map[string]string{"clientId": "c"}, ""},
		{"authority alone", "", map[string]string{"authorityHost": "https://login.test"}, ""},
	} {
		t.Run(v.name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range v.data {
				data[key] = []byte(value)
			}
			endpoint := v.endpoint
			if endpoint == "" {
				endpoint = "https://account.blob.core.windows.net"
			}
			l, err := bucketLogin("azure", endpoint, "key", data)
			switch {
			case v.want == "" && err != nil:
				t.Error(err)
			case v.want != "" && (err == nil || err.Error() != v.want):
				t.Errorf("error %v, want %s", err, v.want)
			}
			if s := fmt.Sprintf("%v %+v", l, l); l != nil && s != "REDACTED REDACTED" {
				t.Error(s)
			}
		})
	}
}

func TestGoogleSecret(t *testing.T) {
	for name, v := range map[string]struct {
		key, want string
	}{
		"no JSON":       {"s3cret", "'serviceaccount' is not a readable service account key"},
		"another JSON":  {`{"a": "s3cret"}`, "'serviceaccount' is not a readable service account key"},
		"no PEM":        {`{"type": "service_account", "private_key": "s3cret"}`, "'serviceaccount' is not a readable service account key"},
		"another kind":  {`{"type": "external_account", "x": "s3cret"}`, "'serviceaccount' is of type external_account, which is not used from a Secret: it may name files and programs of this machine"},
		"not yet known": {`{"type": "gdch_service_account"}`, "'serviceaccount' is not a readable service account key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bucketLogin("gcp", "", "key", map[string][]byte{"serviceaccount": []byte(v.key)})
			if want := "failed to create Google credentials from secret 'key': " + v.want; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	if _, err := bucketLogin("gcp", "", "key", map[string][]byte{}); err == nil || err.Error() != "invalid 'key' secret data: required fields 'serviceaccount'" {
		t.Errorf("error %v", err)
	}
	gcs, err := helmtest.StartGCS("http://token.test/token")
	if err != nil {
		t.Fatal(err)
	}
	defer gcs.Close()
	l, err := bucketLogin("gcp", "", "key", map[string][]byte{"serviceaccount": gcs.Key})
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v", l, l, *l); strings.Contains(s, "PRIVATE") || !strings.Contains(s, "REDACTED") {
		t.Error(s)
	}
}

func TestBucketSecret(t *testing.T) {
	_, err := bucketLogin("generic", "s3.test", "keys", map[string][]byte{"accesskey": []byte("a")})
	if err == nil || err.Error() != "invalid 'keys' secret data: required fields 'accesskey' and 'secretkey'" {
		t.Errorf("error %v", err)
	}
	l, err := bucketLogin("generic", "s3.test", "keys", map[string][]byte{"accesskey": []byte("acc3ss"), "secretkey": []byte("s3cret")})
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v %s", l, l, *l, l); strings.Contains(s, "s3cret") || !strings.Contains(s, "REDACTED") {
		t.Error(s)
	}
}

func TestSTSSecret(t *testing.T) {
	s := secret("ldap", "Opaque", "username", "me")
	if _, err := ldapLogin("ldap", s); err == nil || err.Error() != "invalid 'ldap' secret data for 'ldap' STS provider: required fields username, password" {
		t.Errorf("error %v", err)
	}
	if id, err := ldapLogin("aws", s); id != nil || err != nil {
		t.Errorf("aws: %v, %v", id, err)
	}
	s.Data["password"] = []byte("ld4ppass")
	id, err := ldapLogin("ldap", s)
	if err != nil {
		t.Fatal(err)
	}
	if user, password, _ := id.Basic(); user != "me" || password != "ld4ppass" {
		t.Errorf("%s, %s", user, password)
	}
}
