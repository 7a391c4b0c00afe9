package helmtest

import (
	"net"
	"net/http"
	"strings"
)

// gcsKind serves a GCS server whose bucket charts has the files of the directory, and its token server at token.test. A
// further directory for the same server replaces them. NAME.yaml is the Secret with its key, NAME-other.yaml a Secret with an
// unknown key.
func gcsKind(w *World, name, dir string, c *Config) (http.Handler, error) {
	g, again := w.gcs[name]
	if !again {
		var err error
		if g, err = w.startGCS(name); err != nil {
			return nil, err
		}
	} else if err := g.Empty("charts"); err != nil {
		return nil, err
	}
	g.Anonymous = c.Auth.Anonymous
	return g.Handler, eachFile(dir, func(file string, data []byte) error { return g.Put("charts", file, data) })
}

func (w *World) startGCS(name string) (*GCS, error) {
	tokens := &Config{Addr: "token.test:80"}
	g, err := StartGCS("http://token.test/token")
	if err != nil {
		return nil, err
	}
	w.gcs[name], w.Issued[name] = g, g.Issued
	w.Files[name+".yaml"] = Secret(name, map[string][]byte{"serviceaccount": g.Key})
	w.Files[name+"-other.yaml"] = Secret(name+"-other", map[string][]byte{"serviceaccount": g.Other})
	if err := w.Serve(name+"-token", tokens, g.Tokens); err != nil {
		return nil, err
	}
	return g, g.MakeBucket("charts")
}

// azureKind serves an Azure account whose container charts has the files of the directory, and its login server at
// https://login.test if it uses TLS. A further directory for the same server replaces them. NAME.yaml is a Secret with the
// account's key, NAME-sas.yaml one with a shared access signature, NAME-client.yaml one with the client that may log in.
func azureKind(w *World, name, dir string, c *Config) (http.Handler, error) {
	a, again := w.azure[name]
	if !again {
		host, _, err := net.SplitHostPort(c.Addr)
		if err != nil {
			return nil, err
		}
		account, _, _ := strings.Cut(host, ".")
		a = NewAzure(account)
		w.azure[name], w.Issued[name] = a, a.Issued
		w.azureLogins(name, a)
		if c.TLS {
			if err := w.Serve(name+"-login", &Config{Addr: "login.test:443", TLS: true}, a.Login("login.test")); err != nil {
				return nil, err
			}
		}
	}
	a.Anonymous = c.Auth.Anonymous
	a.MakeContainer("charts")
	return a, eachFile(dir, func(file string, data []byte) error {
		a.Put("charts", file, data)
		return nil
	})
}

func (w *World) azureLogins(name string, a *Azure) {
	w.Files[name+".yaml"] = Secret(name, map[string][]byte{"accountKey": []byte(AzureAccountKey)})
	w.Files[name+"-sas.yaml"] = Secret(name+"-sas", map[string][]byte{"sasKey": []byte(a.SAS("charts", "rl"))})
	w.Files[name+"-client.yaml"] = Secret(name+"-client", map[string][]byte{
		"tenantId": []byte(AzureTenant), "clientId": []byte(AzureClient), "clientSecret": []byte(AzureClientSecret),
		"authorityHost": []byte("https://login.test/"),
	})
}
