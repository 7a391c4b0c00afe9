package credential

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
)

// The keys of a Secret with the data of a GitHub App.
const (
	keyAppID    = "githubAppID"
	keyAppKey   = "githubAppPrivateKey"
	keyAppOwner = "githubAppInstallationOwner"
	keyAppInst  = "githubAppInstallationID"
	keyAppBase  = "githubAppBaseURL"
)

// hasGitHubApp reports whether a Secret is for a GitHub App.
func hasGitHubApp(data map[string][]byte) bool {
	return len(data[keyAppID]) > 0
}

func readGitHubApp(data map[string][]byte) (*git.GitHubApp, error) {
	text := func(key string) string { return strings.TrimSpace(string(data[key])) }
	a := &git.GitHubApp{ID: text(keyAppID), Installation: text(keyAppInst), Owner: text(keyAppOwner)}
	_, wrong := strconv.ParseUint(a.ID, 10, 63)
	_, wrongInstallation := strconv.ParseUint(a.Installation, 10, 63)
	switch {
	case wrong != nil:
		return nil, errors.New("app ID must be provided to use github app authentication")
	case (a.Installation == "") == (a.Owner == ""):
		return nil, fmt.Errorf("must contain exactly one of '%s' or '%s'", keyAppOwner, keyAppInst)
	case a.Installation != "" && wrongInstallation != nil:
		return nil, fmt.Errorf("'%s' is not a number", keyAppInst)
	case len(data[keyAppKey]) == 0:
		return nil, errors.New("private key must be provided to use github app authentication")
	}
	var err error
	if a.Owner != "" {
		if err := auth.OwnerPart.Check("'"+keyAppOwner+"'", a.Owner); err != nil {
			return nil, err
		}
	}
	if a.Key, err = parseRSAKey(data[keyAppKey]); err != nil {
		return nil, err
	}
	base := text(keyAppBase)
	if base == "" {
		base = git.GitHubAPI
	}
	a.API, err = url.Parse(base)
	if err != nil || a.API.Scheme != "https" || a.API.Host == "" || a.API.User != nil || a.API.RawQuery != "" {
		return nil, fmt.Errorf("'%s' is not an https URL", keyAppBase)
	}
	return a, nil
}

func parseRSAKey(text []byte) (*rsa.PrivateKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		if any, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := any.(*rsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("could not parse private key: '%s' contains no readable RSA key", keyAppKey)
}
