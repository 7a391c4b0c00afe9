package cmd

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestCloseDefaultTransport sends requests to a running server with the default client of libraries.
func TestCloseDefaultTransport(t *testing.T) {
	before, _ := http.DefaultTransport.(*http.Transport)
	t.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = before.Clone()
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	closeDefaultTransport()
	for _, url := range []string{server.URL, "http://169.254.169.254/latest/meta-data", "https://127.0.0.1/"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, errNoConnection) {
			t.Errorf("%s: error %v, want %v", url, err, errNoConnection)
		}
	}
	if asked {
		t.Error("the server was asked")
	}
}
