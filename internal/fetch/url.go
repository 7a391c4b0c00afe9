package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// A SchemeError reports that nothing here speaks the protocol of a URL.
type SchemeError struct{ Scheme string }

func (e *SchemeError) Error() string { return fmt.Sprintf("scheme %q not supported", e.Scheme) }

// NormalizeURL returns the one spelling of a repository's URL: HTTP URLs end in one slash, OCI URLs in none. Query and
// percent-encoding stay. The empty string stays empty. An error is a *url.Error that can be shown.
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
	EndInSlash(u)
	return u.String(), nil
}

func EndInSlash(u *url.URL) {
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	if u.RawPath != "" {
		u.RawPath = strings.TrimRight(u.RawPath, "/") + "/"
	}
}

var ErrNoHost = errors.New("no host in URL")
