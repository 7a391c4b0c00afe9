package helmtest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// GCS is fake-gcs-server, an emulator of Google Cloud Storage, with an access control that requires an access token and
// returns listings in pages, unlike the emulator. A token server that knows one service account issues the tokens.
type GCS struct {
	*program
	Issuer

	Handler http.Handler // the object store
	Tokens  http.Handler // the token server
	Key     []byte       // of the service account: the JSON file that Google provides
	Other   []byte       // a key that is unknown to the token server

	Anonymous bool // no login is needed to read

	emulator http.Handler
	public   *rsa.PublicKey
}

// StartGCS starts a server, whose token server will be at this URL.
func StartGCS(tokenURL string) (*GCS, error) {
	g := &GCS{}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	g.public = &key.PublicKey
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	if g.Key, err = serviceAccount(key, tokenURL); err != nil {
		return nil, err
	}
	if g.Other, err = serviceAccount(other, tokenURL); err != nil {
		return nil, err
	}
	g.program, g.emulator, err = startProgram("gcsserver", "github.com/fsouza/fake-gcs-server", func(addr, _ string) ([]string, error) {
		host, port, err := net.SplitHostPort(addr)
		return []string{"-scheme", "http", "-host", host, "-port", port, "-backend", "memory", "-log-level", "error"}, err
	})
	if err != nil {
		return nil, err
	}
	g.Handler, g.Tokens = http.HandlerFunc(g.serve), http.HandlerFunc(g.token)
	return g, nil
}

const gcsAccount = "charts@project.iam.gserviceaccount.com"

func serviceAccount(key *rsa.PrivateKey, tokenURL string) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{
		"type": "service_account", "project_id": "project", "private_key_id": "1", "client_email": gcsAccount, "client_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": tokenURL,
	})
}

// token issues a token for an assertion that the service account's key signed.
func (g *GCS) token(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !g.signed(r.FormValue("assertion")) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}`)
		return
	}
	fmt.Fprintf(w, `{"access_token": %q, "expires_in": 3600, "token_type": "Bearer"}`, g.issue("ya29."))
}

func (g *GCS) signed(assertion string) bool {
	var claims struct {
		Iss   string `json:"iss"`
		Scope string `json:"scope"`
	}
	return readClaims(assertion, g.public, &claims) == nil && claims.Iss == gcsAccount &&
		claims.Scope == "https://www.googleapis.com/auth/devstorage.read_only"
}

func (g *GCS) serve(w http.ResponseWriter, r *http.Request) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case bearer && !slices.Contains(g.Issued(), token):
		googleProblem(w, http.StatusUnauthorized, "Invalid Credentials")
	case !bearer && !g.Anonymous:
		googleProblem(w, http.StatusUnauthorized, "Anonymous caller does not have storage.objects.get access to the Google Cloud Storage object.")
	case strings.HasSuffix(r.URL.Path, "/o"):
		g.listing(w, r)
	default:
		g.emulator.ServeHTTP(w, r)
	}
}

// listing divides the emulator's listing into pages.
func (g *GCS) listing(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, _ := strconv.Atoi(query.Get("maxResults"))
	from, _ := strconv.Atoi(query.Get("pageToken"))
	whole := r.Clone(r.Context())
	for _, name := range []string{"maxResults", "pageToken", "fields"} {
		query.Del(name)
	}
	whole.URL.RawQuery = query.Encode()
	recorder := httptest.NewRecorder()
	g.emulator.ServeHTTP(recorder, whole)
	var page struct {
		Items         []json.RawMessage `json:"items"`
		NextPageToken string            `json:"nextPageToken,omitempty"`
	}
	if recorder.Code != http.StatusOK || json.Unmarshal(recorder.Body.Bytes(), &page) != nil {
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
		return
	}
	page.Items = page.Items[min(from, len(page.Items)):]
	if size > 0 && len(page.Items) > size {
		page.Items, page.NextPageToken = page.Items[:size], strconv.Itoa(from+size)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(page)
}

func googleProblem(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": text}})
}

// MakeBucket makes an empty bucket.
func (g *GCS) MakeBucket(bucket string) error {
	return g.ask(http.MethodPost, "/storage/v1/b?project=project", []byte(`{"name": "`+bucket+`"}`))
}

// Put writes an object.
func (g *GCS) Put(bucket, key string, content []byte) error {
	return g.ask(http.MethodPost, "/upload/storage/v1/b/"+bucket+"/o?uploadType=media&name="+url.QueryEscape(key), content)
}

// Remove removes an object.
func (g *GCS) Remove(bucket, key string) error {
	return g.ask(http.MethodDelete, "/storage/v1/b/"+bucket+"/o/"+url.PathEscape(key), nil)
}

// Empty removes all objects of a bucket.
func (g *GCS) Empty(bucket string) error {
	recorder := httptest.NewRecorder()
	g.emulator.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/storage/v1/b/"+bucket+"/o", nil))
	var page struct{ Items []struct{ Name string } }
	if err := json.Unmarshal(recorder.Body.Bytes(), &page); err != nil {
		return err
	}
	for _, o := range page.Items {
		if err := g.Remove(bucket, o.Name); err != nil {
			return err
		}
	}
	return nil
}

func (g *GCS) ask(method, target string, body []byte) error {
	recorder := httptest.NewRecorder()
	g.emulator.ServeHTTP(recorder, httptest.NewRequest(method, target, bytes.NewReader(body)))
	if recorder.Code >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path.Clean(target), recorder.Code, recorder.Body)
	}
	return nil
}
