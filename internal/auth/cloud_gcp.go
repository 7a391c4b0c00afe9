package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/helmsrc/helmsrc/internal/file"
)

const (
	// googleUser is the user name that goes with an access token in place of a password.
	googleUser = "oauth2accesstoken"
	// maxCredentialsFile bounds a file of application default credentials.
	maxCredentialsFile = 1 << 20
)

func isGoogleRegistry(host string) bool {
	return host == "gcr.io" || strings.HasSuffix(host, ".gcr.io") || strings.HasSuffix(host, "-docker.pkg.dev")
}

var (
	errNoAccessToken   = errors.New("the metadata server's answer contains no access token")
	errCredentialsFile = errors.New("not a file of application default credentials")
)

// gcpLogin uses application default credentials.
func gcpLogin(ctx context.Context, c *Cloud, _ string) (Credential, time.Time, error) {
	token, err := c.googleToken(ctx)
	if err != nil {
		return Credential{}, time.Time{}, err
	}
	return BasicCredential(googleUser, token.AccessToken), token.Expiry, nil
}

// googleToken uses application default credentials: the file that GOOGLE_APPLICATION_CREDENTIALS names (workload identity
// federation included), gcloud's own, the metadata server.
func (c *Cloud) googleToken(ctx context.Context) (*oauth2.Token, error) {
	token, err := c.fromFile(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return c.fromMetadata(ctx)
	}
	return token, err
}

// fromFile returns an fs.ErrNotExist if no file is configured. A file named by the environment has to exist.
func (c *Cloud) fromFile(ctx context.Context) (*oauth2.Token, error) {
	path := c.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	named := path != ""
	if !named {
		path = c.wellKnownFile()
	}
	if path == "" {
		return nil, fs.ErrNotExist
	}
	data, err := file.Read(ctx, path, maxCredentialsFile)
	switch {
	case named && errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("GOOGLE_APPLICATION_CREDENTIALS: no such file: %s", path)
	case err != nil:
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, c.client)
	credentials, err := google.CredentialsFromJSONWithType(ctx, data, credentialsType(data), storageScope)
	if err != nil {
		// The library's error may quote the file.
		return nil, fmt.Errorf("%s: %w", path, errCredentialsFile)
	}
	return credentials.TokenSource.Token()
}

func (c *Cloud) wellKnownFile() string {
	const file = "application_default_credentials.json"
	if runtime.GOOS == "windows" {
		return under(c.Getenv("APPDATA"), "gcloud", file)
	}
	return under(c.Getenv("HOME"), ".config", "gcloud", file)
}

// credentialsType returns the type named in a credentials file, if it is a type with which machines or people log in.
func credentialsType(data []byte) google.CredentialsType {
	var file struct {
		Type google.CredentialsType `json:"type"`
	}
	known := []google.CredentialsType{
		google.ServiceAccount, google.AuthorizedUser, google.ExternalAccount,
		google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount,
	}
	if json.Unmarshal(data, &file) != nil || !slices.Contains(known, file.Type) {
		return "unknown"
	}
	return file.Type
}

func (c *Cloud) fromMetadata(ctx context.Context) (*oauth2.Token, error) {
	const path = "instance/service-accounts/default/token?scopes="
	text, err := metadata.NewClient(c.client).GetWithContext(ctx, path+url.QueryEscape(storageScope))
	if err != nil {
		return nil, fmt.Errorf("no application default credentials, and from the metadata server: %w", err)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if json.Unmarshal([]byte(text), &answer) != nil || answer.AccessToken == "" {
		return nil, errNoAccessToken
	}
	return &oauth2.Token{AccessToken: answer.AccessToken, Expiry: c.Now().Add(time.Duration(answer.ExpiresIn) * time.Second)}, nil
}
