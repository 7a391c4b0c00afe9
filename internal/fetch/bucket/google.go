package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// googleStore is a bucket of Google Cloud Storage. It sends requests of the JSON interface itself: only three kinds are
// needed, and Google's library would make the program two megabytes larger.
type googleStore struct {
	client *http.Client
	home   *url.URL // of the bucket
	prefix string
	page   int
}

// googleObject has the fields of an object's resource that are requested.
type googleObject struct {
	Name       string `json:"name"`
	Etag       string `json:"etag"`
	Size       int64  `json:"size,string"`
	Generation int64  `json:"generation,string"`
}

const googleObjectFields = "name,etag,size,generation"

// openGoogle needs no network. The endpoint is a host, as for other providers, or a URL.
func openGoogle(c *fetch.Client, o Options, connect *bucketTransport) (objectStore, error) {
	host, err := googleEndpoint(o.Endpoint, o.Insecure)
	if err != nil {
		return nil, wrong("", "failed to construct GCP client: %v", err)
	}
	tokens, err := googleTokens(c, o, host)
	if err != nil {
		return nil, wrong("", "failed to construct GCP client: %v", err)
	}
	client := connect.client()
	connect.object = func(r *http.Request) bool { return r.URL.Query().Get("alt") == "media" }
	if tokens != nil {
		client.Transport = &googleTransport{connect, host, tokens}
	}
	home := host.JoinPath("storage", "v1", "b", url.PathEscape(o.Bucket))
	return &googleStore{client: client, home: home, prefix: o.Prefix, page: o.pageKeys}, nil
}

// googleEndpoint returns the URL of the host in spec.endpoint.
func googleEndpoint(endpoint string, insecure bool) (*url.URL, error) {
	if !strings.Contains(endpoint, "://") {
		scheme := "https"
		if insecure {
			scheme = "http"
		}
		endpoint = scheme + "://" + endpoint
	}
	u, err := auth.ParseURL(endpoint)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "":
		return nil, fmt.Errorf("endpoint '%s' is not the name of a host", auth.RedactURL(endpoint))
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fetch.UnsupportedScheme(u.Scheme)
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

// googleTokens selects the login like source-controller: the Secret, else the machine's own identity. Without either, nil.
func googleTokens(c *fetch.Client, o Options, host *url.URL) (*auth.GoogleStorage, error) {
	switch {
	case o.Login != nil:
		return auth.NewGoogleStorage(cloudOptions(c, o), host.Hostname(), o.Login.reveal().Google), nil
	case o.Ambient:
		return unlessWithheld(auth.MachineGoogleStorage(cloudOptions(c, o), o.route(host)))
	}
	return nil, nil
}

// googleTransport shows the token to the endpoint's own host.
type googleTransport struct {
	next   *bucketTransport
	home   *url.URL
	tokens *auth.GoogleStorage
}

func (t *googleTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !auth.SameOrigin(t.home, r.URL) {
		return t.next.RoundTrip(r)
	}
	token, err := t.tokens.Token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.next.RoundTrip(r)
}

func (s *googleStore) exists(ctx context.Context) (bool, error) {
	var bucket struct{}
	err := s.resource(ctx, s.home, url.Values{"fields": {"name"}}, &bucket)
	if answer, ok := errors.AsType[*objectError](err); ok && answer.status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

func (s *googleStore) list(ctx context.Context, visit func(listedObject) error) error {
	query := url.Values{"fields": {"nextPageToken,items(" + googleObjectFields + ")"}, "prefix": {s.prefix}}
	if s.page > 0 {
		query.Set("maxResults", strconv.Itoa(s.page))
	}
	for {
		var page struct {
			Items         []googleObject `json:"items"`
			NextPageToken string         `json:"nextPageToken"`
		}
		if err := s.resource(ctx, s.home.JoinPath("o"), query, &page); err != nil {
			return err
		}
		for _, o := range page.Items {
			if err := visit(listedObject{o.Name, o.Etag, o.Size, o.Generation}); err != nil {
				return err
			}
		}
		if page.NextPageToken == "" {
			return nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

// open opens the current version of the object. If it was replaced since the listing, its entity tag is requested.
func (s *googleStore) open(ctx context.Context, o listedObject) (*openObject, error) {
	at := s.home.JoinPath("o", url.PathEscape(o.key))
	answer, err := s.get(ctx, at, url.Values{"alt": {"media"}}) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, missingObject(err)
	}
	open := &openObject{body: answer.Body, etag: o.etag, size: answer.ContentLength}
	if generation, _ := strconv.ParseInt(answer.Header.Get("X-Goog-Generation"), 10, 64); generation != o.generation && o.etag != "" {
		open.etag, err = s.tag(ctx, at, generation)
	}
	if err != nil {
		_ = open.body.Close()
		return nil, missingObject(err)
	}
	return open, nil
}

// tag requests the entity tag of a generation.
func (s *googleStore) tag(ctx context.Context, at *url.URL, generation int64) (string, error) {
	var now googleObject
	err := s.resource(ctx, at, url.Values{"fields": {googleObjectFields}}, &now)
	if err == nil && now.Generation != generation {
		// No error of the store's: trying again helps.
		err = &objectError{status: http.StatusServiceUnavailable, text: "it changed while it was downloaded"}
	}
	return now.Etag, err
}

// missingObject is for requests about an object: there a 404 reports that it is gone.
func missingObject(err error) error {
	if answer, ok := errors.AsType[*objectError](err); ok {
		answer.missing = answer.status == http.StatusNotFound
	}
	return err
}

// resource reads an answer in JSON.
func (s *googleStore) resource(ctx context.Context, at *url.URL, query url.Values, into any) error {
	answer, err := s.get(ctx, at, query)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	// The transport has bounded it.
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	return nil
}

func (s *googleStore) get(ctx context.Context, at *url.URL, query url.Values) (*http.Response, error) {
	u := *at
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, googleError(answer)
	}
	return answer, nil
}

// googleError reads a refusal, which it closes.
func googleError(answer *http.Response) error {
	defer func() { _ = answer.Body.Close() }()
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := http.StatusText(answer.StatusCode)
	if json.NewDecoder(io.LimitReader(answer.Body, maxGoogleError)).Decode(&said) == nil && said.Error.Message != "" {
		text = said.Error.Message
	}
	return &objectError{status: answer.StatusCode, text: fmt.Sprintf("googleapi: Error %d: %s", answer.StatusCode, text)}
}

// maxGoogleError is the limit of an error answer: far more than Google sends.
const maxGoogleError = 64 << 10
