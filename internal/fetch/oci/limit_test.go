package oci_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// counter counts the concurrent requests at a server.
type counter struct {
	mu        sync.Mutex
	now, most int
}

func (c *counter) count(serve http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.now++
		c.most = max(c.most, c.now)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.now--
		}()
		serve(rw, r)
	}
}

// TestTokensPerHost sends requests for many repositories to three registries with known challenges. All use one token
// server, which holds its answers back.
func TestTokensPerHost(t *testing.T) {
	w := helmtest.NewWorld(nil)
	t.Cleanup(w.Close)
	client := ociClient(t, w)
	serve := func(host string, h http.HandlerFunc) *counter {
		c := new(counter)
		s, err := helmtest.Serve(w.Network, host+":80", nil, c.count(h))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return c
	}
	full, release := make(chan struct{}), make(chan struct{})
	filled := sync.OnceFunc(func() { close(full) })
	var arrived counter
	tokens := serve("auth.test", func(rw http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.FormValue("scope"), "/first") {
			arrived.mu.Lock()
			arrived.now++
			if arrived.now == fetch.DefaultPerHost {
				filled()
			}
			arrived.mu.Unlock()
			<-release
		}
		fmt.Fprint(rw, `{"token":"t0ken"}`)
	})
	counters := map[string]*counter{"auth.test": tokens}
	var registries []*oci.Namespace
	for _, host := range []string{"one.test", "two.test", "three.test"} {
		counters[host] = serve(host, func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer t0ken" {
				rw.Header().Set("WWW-Authenticate", `Bearer realm="http://auth.test/token"`)
				rw.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(rw, `{"tags": ["1.0.0"]}`)
		})
		repo := openOCI(t, client, "oci://"+host+"/charts", oci.Options{Insecure: true, NoProgress: time.Hour})
		if _, err := repo.Tags(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		registries = append(registries, repo)
	}
	serve("other.test", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, `{"tags": ["1.0.0"]}`) })
	var group sync.WaitGroup
	for i := range 2 * fetch.DefaultPerHost {
		for _, repo := range registries {
			group.Go(func() {
				if _, err := repo.Tags(t.Context(), fmt.Sprint("chart-", i)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	<-full
	// Other requests are served meanwhile. They are the time in which more would have arrived at the token server.
	other := openOCI(t, client, "oci://other.test/charts", plain)
	for range 20 {
		if _, err := other.Tags(t.Context(), "podinfo"); err != nil {
			t.Error(err)
		}
	}
	close(release)
	group.Wait()
	for host, c := range counters {
		if c.most > fetch.DefaultPerHost {
			t.Errorf("%d requests at once at %s", c.most, host)
		}
	}
	if tokens.most != fetch.DefaultPerHost {
		t.Errorf("%d token requests at once", tokens.most)
	}
}
