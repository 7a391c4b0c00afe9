package auth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/helmsrc/helmsrc/internal/auth"
)

const webIdentityToken = "canary-web-identity-token-that-is-long-enough-to-look-like-one"

// ecrServer speaks GetAuthorizationToken of both registries.
func ecrServer(t *testing.T, region, service, key, secret, session string) http.HandlerFunc {
	target := map[string]string{"ecr": "AmazonEC2ContainerRegistry_V20150921", "ecr-public": "SpencerFrontendService"}[service]
	return func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if got := r.Header.Get("X-Amz-Target"); got != target+".GetAuthorizationToken" {
			t.Errorf("target %q", got)
		}
		if got := r.Header.Get("X-Amz-Security-Token"); got != session {
			t.Errorf("session token %q, want %q", got, session)
		}
		if err := checkSignature(r, body, region, service, aws.Credentials{AccessKeyID: key, SecretAccessKey: secret, SessionToken: session}); err != nil {
			t.Error(err)
		}
		data := fmt.Sprintf(`{"authorizationToken": %q, "expiresAt": %d}`,
			base64.StdEncoding.EncodeToString([]byte("AWS:canary-ecr-password")), time.Now().Add(12*time.Hour).Unix())
		if service == "ecr" {
			data = "[" + data + "]"
		}
		rw.Header().Set("Content-Type", "application/x-amz-json-1.1")
		fmt.Fprintf(rw, `{"authorizationData": %s}`, data)
	}
}

// checkSignature signs the request again, as AWS does.
func checkSignature(r *http.Request, body []byte, region, service string, c aws.Credentials) error {
	_, list, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	list, signature, _ := strings.Cut(list, ", Signature=")
	again, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "https://"+r.Host+r.URL.Path, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	for _, name := range strings.Split(list, ";") {
		if name != "host" && name != "content-length" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header.Values(name)
		}
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	if err := v4.NewSigner().SignHTTP(r.Context(), c, again, sha256Hex(body), service, region, at); err != nil {
		return err
	}
	if _, want, _ := strings.Cut(again.Header.Get("Authorization"), "Signature="); want != signature {
		return fmt.Errorf("wrong signature: %s, want %s", r.Header.Get("Authorization"), again.Header.Get("Authorization"))
	}
	return nil
}

func stsServer(t *testing.T) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		if r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("WebIdentityToken") != webIdentityToken || r.Form.Get("RoleArn") != "arn:aws:iam::123456789012:role/ci" {
			t.Errorf("form %v", r.Form)
		}
		fmt.Fprintf(rw, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
			<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/ci/x</Arn><AssumedRoleId>X:x</AssumedRoleId></AssumedRoleUser>
			<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken><Expiration>%s</Expiration></Credentials>
			</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}
}

func TestAWS(t *testing.T) {
	const private = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
	envKeys := func(t *testing.T) {
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
	}
	t.Run("environment keys", func(t *testing.T) {
		w := newCloudWorld(t)
		envKeys(t)
		s := w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "AKIAENV", "env-secret", ""))
		c := w.cloud()
		logins, err := c.Logins(t.Context(), "aws", auth.To(private))
		if err != nil {
			t.Fatal(err)
		}
		w.wantBasic(t, logins, nil, private, "AWS:canary-ecr-password")
		if _, err := c.Logins(t.Context(), "aws", auth.To(private)); err != nil {
			t.Error(err)
		}
		wantRequests(t, s, 1)
		t.Run("renewed when its time is over", func(t *testing.T) {
			w.now = w.now.Add(12 * time.Hour)
			if _, err := auth.LoginAt(t.Context(), logins, private, "x"); err != nil {
				t.Error(err)
			}
			wantRequests(t, s, 2)
		})
	})
	t.Run("web identity", func(t *testing.T) {
		w := newCloudWorld(t)
		file := write(t, webIdentityToken, t.TempDir(), "token")
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ci")
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
		w.serve(t, "sts.eu-west-1.amazonaws.com:443", stsServer(t))
		w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "ASIAROLE", "role-secret", "role-session"))
		logins, err := w.cloud().Logins(t.Context(), "aws", auth.To(private))
		if err != nil {
			t.Fatal(err)
		}
		w.wantBasic(t, logins, nil, private, "AWS:canary-ecr-password")
	})
	t.Run("instance metadata", func(t *testing.T) {
		w := newCloudWorld(t)
		t.Setenv("HTTP_PROXY", "http://proxy.test:1") // which does not lead to it
		w.serve(t, "169.254.169.254:80", func(rw http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
				rw.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
				fmt.Fprint(rw, "imds-token")
			case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds-token":
				rw.WriteHeader(http.StatusUnauthorized)
			case strings.TrimSuffix(r.URL.Path, "/") == "/latest/meta-data/iam/security-credentials":
				fmt.Fprint(rw, "node-role")
			case r.URL.Path == "/latest/meta-data/iam/security-credentials/node-role":
				fmt.Fprintf(rw, `{"Code":"Success","AccessKeyId":"ASIANODE","SecretAccessKey":"node-secret","Token":"node-session","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			default:
				rw.WriteHeader(http.StatusNotFound)
			}
		})
		w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", ecrServer(t, "eu-west-1", "ecr", "ASIANODE", "node-secret", "node-session"))
		if _, err := w.cloud().Logins(t.Context(), "aws", auth.To(private)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("registries of other kinds", func(t *testing.T) {
		for _, test := range []struct{ host, server, region, service string }{
			{"public.ecr.aws", "api.ecr-public.us-east-1.amazonaws.com", "us-east-1", "ecr-public"},
			{"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", "api.ecr.cn-north-1.amazonaws.com.cn", "cn-north-1", "ecr"},
			{"123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com", "api.ecr-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1", "ecr"},
			{"123456789012.dkr-ecr.eu-west-1.on.aws", "api.ecr.eu-west-1.amazonaws.com", "eu-west-1", "ecr"},
		} {
			t.Run(test.host, func(t *testing.T) {
				w := newCloudWorld(t)
				envKeys(t)
				w.serve(t, test.server+":443", ecrServer(t, test.region, test.service, "AKIAENV", "env-secret", ""))
				if _, err := w.cloud().Logins(t.Context(), "aws", auth.To(test.host)); err != nil {
					t.Error(err)
				}
			})
		}
	})
	t.Run("AWS_ENDPOINT_URL_ECR", func(t *testing.T) {
		w := newCloudWorld(t)
		envKeys(t)
		t.Setenv("AWS_ENDPOINT_URL_ECR", "http://ecr.test:8000")
		w.serve(t, "ecr.test:8000", func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, `{"authorizationData": [{"authorizationToken": %q, "expiresAt": %d}]}`, base64.StdEncoding.EncodeToString([]byte("AWS:x")), time.Now().Unix()+3600)
		})
		if _, err := w.cloud().Logins(t.Context(), "aws", auth.To(private)); err != nil {
			t.Error(err)
		}
	})
	t.Run("addresses that AWS's configuration decides", func(t *testing.T) {
		for name, test := range map[string]struct {
			env    map[string]string
			host   string
			server string
		}{
			"dual stack":             {map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true"}, private, "ecr.eu-west-1.api.aws:443"},
			"dual stack, FIPS":       {map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true", "AWS_USE_FIPS_ENDPOINT": "true"}, private, "ecr-fips.eu-west-1.api.aws:443"},
			"FIPS":                   {map[string]string{"AWS_USE_FIPS_ENDPOINT": "true"}, private, "api.ecr-fips.eu-west-1.amazonaws.com:443"},
			"of all services":        {map[string]string{"AWS_ENDPOINT_URL": "https://aws.test"}, private, "aws.test:443"},
			"of the service":         {map[string]string{"AWS_ENDPOINT_URL": "https://aws.test", "AWS_ENDPOINT_URL_ECR": "https://ecr.test"}, private, "ecr.test:443"},
			"of the public registry": {map[string]string{"AWS_ENDPOINT_URL_ECR_PUBLIC": "https://public.test"}, "public.ecr.aws", "public.test:443"},
			"ignored": {map[string]string{"AWS_ENDPOINT_URL_ECR": "https://ecr.test", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, private,
				"api.ecr.eu-west-1.amazonaws.com:443"},
		} {
			t.Run(name, func(t *testing.T) {
				w := newCloudWorld(t)
				envKeys(t)
				for name, value := range test.env {
					t.Setenv(name, value)
				}
				region, service := "eu-west-1", "ecr"
				if test.host != private {
					region, service = "us-east-1", "ecr-public"
				}
				s := w.serve(t, test.server, ecrServer(t, region, service, "AKIAENV", "env-secret", ""))
				if _, err := w.cloud().Logins(t.Context(), "aws", auth.To(test.host)); err != nil {
					t.Error(err)
				}
				wantRequests(t, s, 1)
			})
		}
	})
	t.Run("a server that has a bad moment", func(t *testing.T) {
		for attempts, want := range map[string]int{"1": 1, "2": 2, "": 2} {
			t.Run("AWS_MAX_ATTEMPTS="+attempts, func(t *testing.T) {
				w := newCloudWorld(t)
				envKeys(t)
				t.Setenv("AWS_MAX_ATTEMPTS", attempts)
				answer, asked := ecrServer(t, "eu-west-1", "ecr", "AKIAENV", "env-secret", ""), 0
				s := w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", func(rw http.ResponseWriter, r *http.Request) {
					if asked++; asked == 1 {
						rw.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					answer(rw, r)
				})
				_, err := w.cloud().Logins(t.Context(), "aws", auth.To(private))
				if (err == nil) != (want == 2) {
					t.Error(err)
				}
				wantRequests(t, s, want)
			})
		}
	})
	t.Run("answers without a login", func(t *testing.T) {
		for _, answer := range []string{"", "x", "{}", `{"authorizationData": []}`, `{"authorizationData": {}}`, `{"authorizationData": [{"authorizationToken": "QVdT"}]}`} {
			w := newCloudWorld(t)
			envKeys(t)
			w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, answer) })
			_, err := w.cloud().Logins(t.Context(), "aws", auth.To(private))
			wantCloudError(t, err, "the registry's answer contains no authorization token", "", false)
		}
	})
	t.Run("refused", func(t *testing.T) {
		w := newCloudWorld(t)
		envKeys(t)
		w.serve(t, "api.ecr.eu-west-1.amazonaws.com:443", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(rw, `{"__type":"AccessDeniedException","message":"User is not authorized to perform: ecr:GetAuthorizationToken"}`)
		})
		_, err := w.cloud().Logins(t.Context(), "aws", auth.To(private))
		wantCloudError(t, err, "AccessDeniedException: User is not authorized to perform: ecr:GetAuthorizationToken", "ecr:GetAuthorizationToken", false)
	})
}

func sha256Hex(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
