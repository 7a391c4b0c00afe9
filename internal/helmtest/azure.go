package helmtest

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The keys of the Azure server and its login.
const (
	AzureAccountKey   = "YXp1cmUtYWNjb3VudC1rZXktb2YtdGhlLXRlc3Rz"
	AzureTenant       = "11111111-2222-3333-4444-555555555555"
	AzureClient       = "66666666-7777-8888-9999-000000000000"
	AzureClientSecret = "azure-client-secret-of-the-tests"
)

// Azure is a small Blob Storage server, because no existing one is written in Go. It checks signatures with a shared key,
// shared access signatures of containers, and bearer tokens as the documentation of the real server describes, and answers
// with its codes. It does not check the age of keys, signatures and tokens.
type Azure struct {
	Issuer

	Account   string
	Anonymous bool   // no login is needed to read
	Resource  string // in the challenge; the default is Azure's own

	mu         sync.Mutex
	containers map[string]map[string]azureBlob
}

type azureBlob struct {
	content   []byte
	directory bool
}

// NewAzure returns a server for an account.
func NewAzure(account string) *Azure {
	return &Azure{Account: account, Resource: "https://storage.azure.com", containers: map[string]map[string]azureBlob{}}
}

// MakeContainer makes an empty container, or empties it.
func (a *Azure) MakeContainer(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.containers[name] = map[string]azureBlob{}
}

// Put writes a blob. A key that ends in a slash creates a directory blob, as accounts with directories have them.
func (a *Azure) Put(container, key string, content []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, directory := strings.CutSuffix(key, "/")
	a.containers[container][name] = azureBlob{content, directory}
}

// Remove removes a blob.
func (a *Azure) Remove(container, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.containers[container], key)
}

// AzureTag returns the entity tag of a blob with this content, as in headers.
func AzureTag(content []byte) string {
	return fmt.Sprintf(`"0x8D%X"`, sha256.Sum256(content))[:17] + `"`
}

// ServeHTTP answers listings and downloads.
func (a *Azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, code := a.authorize(r)
	if status != 0 {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer authorization_uri=https://login.test/"+AzureTenant+"/oauth2/authorize resource_id="+a.Resource)
		}
		azureProblem(w, status, code)
		return
	}
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	a.mu.Lock()
	blobs, found := a.containers[name]
	blobs = maps.Clone(blobs)
	a.mu.Unlock()
	blob, there := blobs[key]
	switch {
	case !found:
		azureProblem(w, http.StatusNotFound, "ContainerNotFound")
	case r.URL.Query().Get("comp") == "list":
		azureListing(w, r, blobs)
	case !there:
		azureProblem(w, http.StatusNotFound, "BlobNotFound")
	default:
		w.Header().Set("ETag", AzureTag(blob.content))
		w.Header().Set("Content-Length", strconv.Itoa(len(blob.content)))
		_, _ = w.Write(blob.content)
	}
}

// authorize returns the status and the code of a refusal, or 0.
func (a *Azure) authorize(r *http.Request) (int, string) {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	query := r.URL.Query()
	switch {
	case kind == "SharedKey" && value == a.Account+":"+a.sharedKey(r):
		return 0, ""
	case kind == "Bearer" && slices.Contains(a.Issued(), value):
		return 0, ""
	case kind == "Bearer":
		return http.StatusUnauthorized, "InvalidAuthenticationInfo"
	case kind == "" && query.Get("sig") != "" && query.Get("sig") == a.accessSignature(r):
		if right := map[bool]string{true: "l", false: "r"}[query.Get("comp") == "list"]; !strings.Contains(query.Get("sp"), right) {
			return http.StatusForbidden, "AuthorizationPermissionMismatch"
		}
		return 0, ""
	case kind == "" && query.Get("sig") == "" && a.Anonymous:
		return 0, ""
	case kind == "" && query.Get("sig") == "":
		return http.StatusUnauthorized, "NoAuthenticationInformation"
	}
	return http.StatusForbidden, "AuthenticationFailed"
}

// sharedKey computes the signature of a request as described on the page "Authorize with Shared Key".
func (a *Azure) sharedKey(r *http.Request) string {
	length := r.Header.Get("Content-Length")
	if length == "0" {
		length = ""
	}
	lines := []string{r.Method}
	for _, name := range []string{"Content-Encoding", "Content-Language"} {
		lines = append(lines, r.Header.Get(name))
	}
	lines = append(lines, length)
	for _, name := range []string{"Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		lines = append(lines, r.Header.Get(name))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			lines = append(lines, lower+":"+strings.Join(r.Header[name], ","))
		}
	}
	lines = append(lines, "/"+a.Account+r.URL.EscapedPath())
	query := r.URL.Query()
	for _, name := range slices.SortedFunc(maps.Keys(query), func(x, y string) int { return cmp.Compare(strings.ToLower(x), strings.ToLower(y)) }) {
		values := slices.Sorted(slices.Values(query[name]))
		lines = append(lines, strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	return azureSign(strings.Join(lines, "\n"))
}

// accessSignature computes the signature of a service SAS for a container as described on the page "Create a service SAS", for
// versions since 2020-12-06.
func (a *Azure) accessSignature(r *http.Request) string {
	q := r.URL.Query()
	container, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return azureSAS(q, "/blob/"+a.Account+"/"+container)
}

func azureSAS(q url.Values, resource string) string {
	return azureSign(strings.Join([]string{
		q.Get("sp"), q.Get("st"), q.Get("se"), resource, q.Get("si"), q.Get("sip"), q.Get("spr"), q.Get("sv"), q.Get("sr"),
		q.Get("snapshot"), q.Get("ses"), q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct"),
	}, "\n"))
}

// SAS returns a shared access signature for a container, with these permissions.
func (a *Azure) SAS(container, permissions string) string {
	q := url.Values{"sp": {permissions}, "se": {"2099-01-01T00:00:00Z"}, "sv": {"2022-11-02"}, "sr": {"c"}}
	q.Set("sig", azureSAS(q, "/blob/"+a.Account+"/"+container))
	return q.Encode()
}

func azureSign(text string) string {
	key, _ := base64.StdEncoding.DecodeString(AzureAccountKey)
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, text)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func azureProblem(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>RequestId:%s\nTime:%s</Message></Error>",
		code, rand.Text(), time.Now().UTC().Format(time.RFC3339))
}

type azureList struct {
	XMLName    xml.Name    `xml:"EnumerationResults"`
	Blobs      []azureItem `xml:"Blobs>Blob"`
	NextMarker string
}

type azureItem struct {
	Name     string
	Tag      string `xml:"Properties>Etag"`
	Length   int    `xml:"Properties>Content-Length"`
	IsFolder string `xml:"Metadata>hdi_isfolder,omitempty"`
}

// azureListing writes a page of a listing. Tags have no quotes there.
func azureListing(w http.ResponseWriter, r *http.Request, blobs map[string]azureBlob) {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("maxresults"))
	if size <= 0 {
		size = 5000
	}
	var list azureList
	for _, key := range slices.Sorted(maps.Keys(blobs)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key < q.Get("marker") {
			continue
		}
		if len(list.Blobs) == size {
			list.NextMarker = key
			break
		}
		item := azureItem{Name: key, Tag: strings.Trim(AzureTag(blobs[key].content), `"`), Length: len(blobs[key].content)}
		if blobs[key].directory && strings.Contains(q.Get("include"), "metadata") {
			item.IsFolder = "true"
		}
		list.Blobs = append(list.Blobs, item)
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(list)
}

// Login returns the login server, Microsoft Entra ID, at a host. It issues tokens for object stores to the client of the
// tests.
func (a *Azure) Login(host string) http.Handler {
	base := "https://" + host + "/" + AzureTenant
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/" + AzureTenant + "/v2.0/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"authorization_endpoint": "%s/oauth2/v2.0/authorize", "token_endpoint": "%s/oauth2/v2.0/token", "issuer": "%s/v2.0"}`, base, base, base)
		case "/" + AzureTenant + "/oauth2/v2.0/token":
			a.login(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

func (a *Azure) login(w http.ResponseWriter, r *http.Request) {
	known := r.FormValue("client_secret") == AzureClientSecret || r.FormValue("client_assertion") != ""
	if !known || r.FormValue("client_id") != AzureClient || !slices.Contains(strings.Fields(r.FormValue("scope")), "https://storage.azure.com/.default") {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."}`)
		return
	}
	fmt.Fprintf(w, `{"token_type": "Bearer", "expires_in": 3600, "access_token": %q}`, a.issue("eyJ."))
}
