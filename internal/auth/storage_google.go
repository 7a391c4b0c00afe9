package auth

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// storageScope lets a token only read objects. It is also the narrowest that Artifact Registry and Container Registry
// accept.
const storageScope = "https://www.googleapis.com/auth/devstorage.read_only"

// GoogleStorage returns the access tokens for Google's object store. It is safe for concurrent use.
type GoogleStorage struct {
	ask  func(context.Context) (*oauth2.Token, error)
	host string
	now  func() time.Time

	turn  chan struct{} // held while a token is requested
	token *oauth2.Token
}

// MachineGoogleStorage returns the identity of this machine: the application default credentials. They are sent to
// Google's own hosts only: for other hosts, asking for a token fails. If a manifest chose the route to Google's hosts,
// the error is a *WithheldError. No request is sent before the first token is needed.
func MachineGoogleStorage(o CloudOptions, on Route) (*GoogleStorage, error) {
	host := on.to.Hostname()
	if err := o.withhold(on, "gcp", isGoogleStorage(host)); err != nil {
		return nil, err
	}
	c := NewCloud(o)
	return &GoogleStorage{host: host, now: o.Now, turn: make(chan struct{}, 1), ask: func(ctx context.Context) (*oauth2.Token, error) {
		if !isGoogleStorage(host) {
			return nil, foreignStorage("gcp", host)
		}
		return c.googleToken(ctx)
	}}, nil
}

// GoogleKey is the key of a service account, or of a user. It prints as "REDACTED".
type GoogleKey struct {
	Redacted
	json []byte
	kind google.CredentialsType
}

// ReadGoogleKey parses a key in a Secret. Its errors do not quote the key.
func ReadGoogleKey(key []byte) (*GoogleKey, error) {
	kind, err := checkGoogleKey(key)
	if err != nil {
		return nil, err
	}
	return &GoogleKey{json: key, kind: kind}, nil
}

// NewGoogleStorage returns the identity of a key. No request is sent before the first token is needed.
func NewGoogleStorage(o CloudOptions, host string, key *GoogleKey) *GoogleStorage {
	s := &GoogleStorage{host: host, now: o.Now, turn: make(chan struct{}, 1)}
	client := cloudClient(o)
	s.ask = func(ctx context.Context) (*oauth2.Token, error) {
		failures := keepFailures(client)
		ctx = context.WithValue(ctx, oauth2.HTTPClient, failures.client)
		credentials, err := google.CredentialsFromJSONWithType(ctx, key.json, key.kind, storageScope)
		if err != nil {
			return nil, errGoogleKey // the library's error may quote the key
		}
		token, err := credentials.TokenSource.Token()
		return token, failures.cause(err)
	}
	return s
}

// A failureKeeper records the error of the last request: the texts of libraries' errors do not show whether a retry may help.
type failureKeeper struct {
	client *http.Client
	next   http.RoundTripper

	mu   sync.Mutex
	last error
}

// keepFailures returns a keeper with a copy of the client.
func keepFailures(of *http.Client) *failureKeeper {
	k := &failureKeeper{next: of.Transport}
	client := *of
	client.Transport = k
	k.client = &client
	return k
}

func (k *failureKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := k.next.RoundTrip(r)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = err
	return answer, err
}

// cause adds the error of the last failed request to an error.
func (k *failureKeeper) cause(err error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil || k.last == nil {
		return err
	}
	return &finding.Problem{Text: err.Error(), Err: errors.Join(err, k.last)}
}

var errGoogleKey = errors.New("'serviceaccount' is not a readable service account key")

// checkGoogleKey returns the kind of a key. Kinds that make this program read other files, run programs or send
// requests to other servers may be used by the owner of the machine, but not by manifests.
func checkGoogleKey(key []byte) (google.CredentialsType, error) {
	var file struct {
		Type       google.CredentialsType `json:"type"`
		PrivateKey string                 `json:"private_key"`
	}
	if len(key) > maxCredentialsFile || json.Unmarshal(key, &file) != nil {
		return "", errGoogleKey
	}
	switch file.Type {
	case google.AuthorizedUser:
		return file.Type, nil
	case google.ServiceAccount:
		if block, _ := pem.Decode([]byte(file.PrivateKey)); block == nil {
			return "", errGoogleKey
		}
		return file.Type, nil
	case google.ExternalAccount, google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount:
		return "", fmt.Errorf("'serviceaccount' is of type %s, which is not used from a Secret: it may name files and programs of this machine", file.Type)
	}
	return "", errGoogleKey
}

// Token returns a token that is good for a while. An error is a *CloudError, or the context's.
func (s *GoogleStorage) Token(ctx context.Context) (string, error) {
	if err := takeTurn(ctx, s.turn, nil); err != nil {
		return "", err
	}
	defer func() { <-s.turn }()
	if s.token != nil && (s.token.Expiry.IsZero() || s.now().Before(s.token.Expiry.Add(-cloudLeeway))) {
		return s.token.AccessToken, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cloudTimeout)
	defer cancel()
	token, err := s.ask(ctx)
	if err != nil {
		return "", storageFailure("gcp", err)
	}
	s.token = token
	return token.AccessToken, nil
}

// isGoogleStorage matches the public name, the names of regions, and the names of private endpoints.
func isGoogleStorage(host string) bool {
	return strings.HasSuffix(strings.ToLower(host), ".googleapis.com")
}

// foreignStorage reports that the server is not the provider's, and must not see this machine's identity.
func foreignStorage(provider, host string) error {
	return &finding.Problem{
		Text:   fmt.Sprintf("'%s' is not a host of the provider %s: the identity of this machine is not sent to it", host, provider),
		Advice: finding.WithoutIdentity,
	}
}

// storageFailure reports why there is no token for an object store.
func storageFailure(provider string, err error) error {
	e := &CloudError{Err: err, what: "failed to get an access token"}
	switch code := cloudStatus(err); {
	case code == 0 || code >= 500 || provider == awsStorageProvider:
	case provider == "gcp":
		e.hint = "the service account may have been disabled, or its key removed"
	default:
		e.hint = "tenantId, clientId, and the secret or certificate may be wrong or out of date"
	}
	return e
}
