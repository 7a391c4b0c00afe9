package helmrepo

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

func TestTLSFailures(t *testing.T) {
	w := fetchtest.NewWorld(t)
	w.ServeTLS(t, "repo.test:443", w.ServerTLS(t, "repo.test", false), fetchtest.Files{"/x": "archive"})
	w.ServeTLS(t, "mutual.test:443", w.ServerTLS(t, "mutual.test", true), fetchtest.Files{"/x": "archive"})
	w.ServeTLS(t, "wrong.test:443", w.ServerTLS(t, "repo.test", false), fetchtest.Files{"/x": "archive"})
	ca := func(ca *helmtest.CA) map[string][]byte { return map[string][]byte{"ca.crt": ca.Cert} }
	pair := func(p helmtest.Pair) map[string][]byte {
		return map[string][]byte{"ca.crt": w.Kit.CA.Cert, "tls.crt": p.Cert, "tls.key": p.Key}
	}
	for _, tt := range []struct {
		name, url string
		cert      map[string][]byte
		err       string // empty: it works
	}{
		{"case 9: private CA", "https://repo.test", ca(w.Kit.CA), ""},
		{"client certificate", "https://mutual.test", pair(w.Kit.Client), ""},
		{"unknown authority", "https://repo.test", nil, "x509: certificate signed by unknown authority"},
		{"other authority", "https://repo.test", ca(w.Kit.Other), "x509: certificate signed by unknown authority"},
		{"other host", "https://wrong.test", ca(w.Kit.CA), "x509: certificate is valid for repo.test, not wrong.test"},
		{"no client certificate", "https://mutual.test", ca(w.Kit.CA), "tls: certificate required"},
		{"client certificate of another authority", "https://mutual.test", pair(w.Kit.OtherClient), "tls: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := get(t, repository(w, t, tt.url, fetchtest.Identity(t, nil, tt.cert), Options{}))
			if tt.err == "" {
				if err != nil || got != "archive" {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			fetchtest.WantError(t, err, tt.err)
			if fetch.Transient(err) || !fetch.AuthFailure(err) || len(w.Delays) > 0 {
				t.Errorf("transient %v, auth %v, waits %v", fetch.Transient(err), fetch.AuthFailure(err), w.Delays)
			}
		})
	}
}

func TestNoSuchHost(t *testing.T) {
	w := fetchtest.NewWorld(t)
	_, err := get(t, repository(w, t, "http://nowhere.test", nil, Options{}))
	fetchtest.WantError(t, err, "no such host")
	if !fetch.Transient(err) || len(w.Delays) != 3 {
		t.Errorf("transient %v, waits %v", fetch.Transient(err), w.Delays)
	}
}

// A stream that a server resets is the network's failure; net/http does not export the type of this error.
func TestHTTP2Reset(t *testing.T) {
	w := fetchtest.NewWorld(t)
	config := w.ServerTLS(t, "repo.test", false)
	config.NextProtos = []string{"h2"}
	w.ServeTLS(t, "repo.test:443", config, fetchtest.InTurn(
		http.HandlerFunc(reset),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("beginning"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}),
		http.HandlerFunc(fetchtest.Short),
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })))
	id := fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	got, err := get(t, repository(w, t, "https://repo.test", id, Options{}))
	if err != nil || got != "HTTP/2.0" || len(w.Delays) != 3 {
		t.Errorf("got %q, %v after %v", got, err, w.Delays)
	}
}

func TestThroughProxy(t *testing.T) {
	w := fetchtest.NewWorld(t)
	proxy := w.Serve(t, "proxy.test:3128", helmtest.Proxy(w.Network, "px:canary-proxy"))
	w.ServeTLS(t, "repo.test:443", w.ServerTLS(t, "repo.test", false), fetchtest.Files{"/x": "archive"})
	password := "canary-proxy"
	w.Config.Getenv = func(key string) string {
		if key == "HTTPS_PROXY" {
			return "http://px:" + password + "@proxy.test:3128"
		}
		return ""
	}
	id := fetchtest.Identity(t, nil, map[string][]byte{"ca.crt": w.Kit.CA.Cert})
	if got, err := get(t, repository(w, t, "https://repo.test", id, Options{})); err != nil || got != "archive" {
		t.Errorf("got %q, %v", got, err)
	}
	if len(proxy.Log.Drain()) != 1 {
		t.Error("went past the proxy")
	}
	password = "canary-wrong"
	_, err := get(t, repository(w, t, "https://repo.test", id, Options{}))
	fetchtest.WantError(t, err, "the proxy answered 407")
	if fetch.Transient(err) || !strings.Contains(fetchtest.HintOf(err), "HTTPS_PROXY") {
		t.Errorf("transient %v, hint %q", fetch.Transient(err), fetchtest.HintOf(err))
	}
	password = "canary-proxy"
	_, err = get(t, repository(w, t, "https://nowhere.test", id, Options{}))
	fetchtest.WantError(t, err, "the proxy answered 502")
	if !fetch.Transient(err) {
		t.Error("a bad gateway is not transient")
	}
}
