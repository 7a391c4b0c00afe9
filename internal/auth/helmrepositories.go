package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// maxRepositoriesFile is far above any repositories.yaml that people keep, and
// maxPEMFile above any chain of certificates.
const (
	maxRepositoriesFile = 4 << 20
	maxPEMFile          = 1 << 20
)

// HelmRepositories finds the login that `helm repo add` stored for the repository at a URL. The file is Helm's
// repositories.yaml: the named file, else the one that Helm itself would read. Without an entry for the URL, or without a
// file at Helm's own place, it returns the anonymous identity and the empty source. The identity is an ambient one, which
// is sent to its own host only, on a route that no manifest chose, unless it has more reach.
func HelmRepositories(ctx context.Context, o AmbientOptions, named, url string) (id *Identity, source string, err error) {
	path, getenv := named, o.Getenv
	if path == "" {
		path = cmp.Or(getenv("HELM_REPOSITORY_CONFIG"), under(helmConfigHome(getenv, homeDir(getenv)), "repositories.yaml"))
	}
	if path == "" {
		return nil, "", nil
	}
	content, err := file.Read(ctx, path, maxRepositoriesFile)
	if errors.Is(err, fs.ErrNotExist) && named == "" {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("cannot read Helm's repositories: %w", err)
	}
	entry, err := findRepository(content, url)
	if err != nil {
		return nil, "", fmt.Errorf("cannot read Helm's repositories: %s: %w", path, err)
	}
	if entry == nil {
		return nil, "", nil
	}
	id, err = entry.identity(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("entry '%s' of Helm's repositories: %w", entry.Name, err)
	}
	return id.fromEnvironment("the login in "+path, o.Reach), path, nil
}

// KnownToHelm returns the values that [HelmRepositories] finds for a URL, or nil if it finds no entry or fails. The result
// contains secrets, and must be hashed at once.
func KnownToHelm(ctx context.Context, o AmbientOptions, named, url string) []string {
	id, source, err := HelmRepositories(ctx, o, named, url)
	if err != nil || source == "" {
		return nil
	}
	s := id.reveal()
	return []string{s.username, s.password, string(s.ca), string(s.cert), string(s.key)}
}

// helmRepository is an entry of repositories.yaml, with the fields that are needed.
type helmRepository struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Username string `json:"username"`
	Password string `json:"password"`
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

// errNotRepositories replaces the parser's own error, which quotes the file.
var errNotRepositories = errors.New("it is not a repositories file")

func findRepository(content []byte, url string) (*helmRepository, error) {
	var list struct {
		Repositories []*helmRepository `json:"repositories"`
	}
	if err := yaml.Unmarshal(content, &list); err != nil {
		return nil, errNotRepositories
	}
	for _, entry := range list.Repositories {
		if entry != nil && strings.TrimRight(entry.URL, "/") == strings.TrimRight(url, "/") {
			return entry, nil
		}
	}
	return nil, nil
}

// identity reads the entry as if it were a pair of Secrets, so that both places
// mean the same.
func (r *helmRepository) identity(ctx context.Context) (*Identity, error) {
	login := &manifest.Secret{Name: r.Name, Data: map[string][]byte{}}
	if r.Username != "" && r.Password != "" {
		login.Data[keyUsername], login.Data[keyPassword] = []byte(r.Username), []byte(r.Password)
	}
	cert := &manifest.Secret{Name: r.Name, Type: typeOpaque, Data: map[string][]byte{}}
	for key, path := range map[string]string{keyCA: r.CAFile, keyCert: r.CertFile, keyKey: r.KeyFile} {
		if path == "" {
			continue
		}
		content, err := file.Read(ctx, path, maxPEMFile)
		if err != nil {
			return nil, err
		}
		cert.Data[key] = content
	}
	if len(cert.Data) == 0 {
		cert = nil
	}
	id, _, err := FromSecrets(login, cert)
	return id, err
}
