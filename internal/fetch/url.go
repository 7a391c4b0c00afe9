package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// UnsupportedScheme reports that this program does not support the protocol of a URL.
func UnsupportedScheme(scheme string) error {
	return &finding.Problem{Code: finding.UnsupportedScheme, Text: fmt.Sprintf("scheme %q not supported", scheme)}
}

// NormalizeURL returns the canonical spelling of a repository's URL: HTTP URLs end in one slash, OCI URLs without a slash. The name of the index at the end of an HTTP URL is
// dropped, see [NamesIndex]. Query and percent-encoding stay. The empty string stays empty. An error is a *url.Error that can be shown.
func NormalizeURL(raw string) (string, error) {
	if raw == "" {
		return "", nil
	}
	u, err := auth.ParseURL(raw)
	if err != nil {
		return "", err
	}
	if u.Scheme == "oci" {
		return strings.TrimRight(raw, "/"), nil
	}
	if NamesIndex(u) {
		u.Path, u.RawPath = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), indexName), ""
	}
	EndInSlash(u)
	return u.String(), nil
}

// indexName is the file below the URL of a Helm repository.
const indexName = "/index.yaml"

// NamesIndex reports whether a URL is the URL of an index, instead of its directory. It is false for a path with
// escapes that have to stay.
func NamesIndex(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.RawPath == "" && strings.HasSuffix(strings.TrimRight(u.Path, "/"), indexName)
}

func EndInSlash(u *url.URL) {
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	if u.RawPath != "" {
		u.RawPath = strings.TrimRight(u.RawPath, "/") + "/"
	}
}

var ErrNoHost = errors.New("no host in URL")
