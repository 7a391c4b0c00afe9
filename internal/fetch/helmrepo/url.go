package helmrepo

import (
	"net/url"
	"path"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

const indexFile = "index.yaml"

// indexURL returns the URL of a repository's index: "//", "." and ".." in the path are resolved, the query is kept.
func indexURL(repo *url.URL) *url.URL {
	u := *repo
	u.Path = path.Join("/", u.Path, indexFile)
	if u.RawPath != "" {
		u.RawPath = path.Join("/", u.RawPath, indexFile)
	}
	u.Fragment, u.RawFragment = "", ""
	return &u
}

// ChartURL returns the URL of an archive. Of an absolute reference only spaces are escaped. A relative reference is resolved
// against the repository's URL, whose query it gets if it has no query and stays on the same host.
func ChartURL(repo, ref string) (string, error) {
	base, err := auth.ParseURL(repo)
	if err != nil {
		return "", err
	}
	u, err := parseReference(ref)
	if err != nil {
		return "", err
	}
	if u.IsAbs() {
		if strings.Contains(ref, " ") {
			return u.String(), nil
		}
		return ref, nil
	}
	resolved := resolveReference(base, u)
	return resolved.String(), nil
}

// parseReference parses the URL of an archive. The parser accepts a space in a path and escapes it in String; a space in a
// query it would not escape.
func parseReference(ref string) (*url.URL, error) {
	u, err := auth.ParseURL(ref)
	if err == nil {
		u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	}
	return u, err
}

func resolveReference(repo, ref *url.URL) *url.URL {
	base := *repo
	if fetch.NamesIndex(repo) {
		base.Path = strings.TrimSuffix(strings.TrimRight(repo.Path, "/"), indexFile)
	}
	fetch.EndInSlash(&base)
	u := base.ResolveReference(ref)
	// A query often contains a token. It is meant for this host, not for another host in the index.
	if u.RawQuery == "" && auth.SameOrigin(u, repo) {
		u.RawQuery = repo.RawQuery
	}
	return u
}

// archiveURL returns the URL of an archive in an index as it will be requested.
func archiveURL(repo *url.URL, ref string) (*url.URL, error) {
	u, err := parseReference(ref)
	if err != nil {
		return nil, err
	}
	if !u.IsAbs() {
		return resolveReference(repo, u), nil
	}
	switch u.Scheme {
	case "http", "https":
	case "oci":
		return nil, &OCIURLError{URL: auth.RedactURL(ref), raw: func() string { return ref }}
	default:
		return nil, fetch.UnsupportedScheme(u.Scheme)
	}
	if u.Host == "" {
		return nil, auth.RedactURLError(&url.Error{Op: "parse", URL: ref, Err: fetch.ErrNoHost})
	}
	return u, nil
}

// An OCIURLError reports that an index of an HTTP repository points to an archive in an OCI registry.
type OCIURLError struct {
	URL string // redacted

	raw func() string
}

// Reference returns the URL in the index, unchanged.
func (e *OCIURLError) Reference() string { return e.raw() }

func (e *OCIURLError) Error() string { return "the archive is in an OCI registry: " + e.URL }

// Hint returns advice for the user.
func (e *OCIURLError) Hint() string {
	return "use a HelmRepository with type: oci and the URL of the registry"
}
