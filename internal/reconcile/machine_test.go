package reconcile

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// TestMachineTokensPerHost logs in to many registries of Google at once with the identity of the machine. The metadata
// server delays its answers: it must not have more waiting requests than any other host.
func TestMachineTokensPerHost(t *testing.T) {
	t.Parallel()
	const registries = 3 * fetch.DefaultPerHost
	var manifests strings.Builder
	manifests.WriteString("-- all.yaml --\napiVersion: v1\nkind: List\nitems:\n")
	for i := range registries {
		fmt.Fprintf(&manifests, "- {apiVersion: source.toolkit.fluxcd.io/v1, kind: OCIRepository, metadata: {name: r%[1]d}, "+
			"spec: {interval: 5m, provider: gcp, url: \"oci://r%[1]d-docker.pkg.dev/p/charts/podinfo\", ref: {tag: 1.0.0}}}\n", i)
	}
	w := newWorld(t, manifests.String())
	serve := func(addr string, h http.HandlerFunc) *helmtest.Server {
		s, err := helmtest.Serve(w.Network, addr, nil, h)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	other := serve("other.test:80", func(http.ResponseWriter, *http.Request) {})
	var mu sync.Mutex
	now, most, all := 0, 0, 0
	full, release := make(chan struct{}), make(chan struct{})
	filled := sync.OnceFunc(func() { close(full) })
	serve("169.254.169.254:80", func(rw http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		now, all = now+1, all+1
		most = max(most, now)
		if now == fetch.DefaultPerHost {
			filled()
		}
		mu.Unlock()
		<-release
		mu.Lock()
		now--
		mu.Unlock()
		fmt.Fprint(rw, `{"access_token":"canary-token","expires_in":3600}`)
	})
	go func() {
		defer close(release)
		<-full
		for range 20 { // time in which further requests would have reached the metadata server
			if answer, err := http.Get(other.URL); err == nil {
				_ = answer.Body.Close()
			}
		}
	}()
	w.run(t, Options{Concurrency: registries, Ambient: true})
	if most != fetch.DefaultPerHost || all != registries {
		t.Errorf("%d token requests at once, %d in all", most, all)
	}
}
