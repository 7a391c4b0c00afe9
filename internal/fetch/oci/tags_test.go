package oci_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

// pagedTags serves tags in pages of a size that the registry decides on, as registries do.
func pagedTags(tags []string, size int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		start := 0
		if last := r.URL.Query().Get("last"); last != "" {
			start = slices.Index(tags, last) + 1
		}
		end := min(start+size, len(tags))
		next := ""
		if end < len(tags) {
			next = fmt.Sprintf("/v2/charts/podinfo/tags/list?last=%s&n=%d", tags[end-1], size)
		}
		page(w, next, tags[start:end]...)
	}
}

func manyTags(n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprintf("%d.%d.%d", i/1000, i/10%100, i%10)
	}
	return tags
}

// tagRegistry also counts connections.
func tagRegistry(tb testing.TB, h http.Handler) (*oci.Namespace, *helmtest.Server, *atomic.Int64) {
	tb.Helper()
	network := helmtest.NewNetwork()
	s, err := helmtest.Serve(network, "registry.test:80", nil, h)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	var connections atomic.Int64
	c := oci.NewClient(fetch.NewClient(fetch.Config{Now: time.Now, Dial: func(ctx context.Context, n, addr string) (net.Conn, error) {
		connections.Add(1)
		return network.Dial(ctx, n, addr)
	}}))
	tb.Cleanup(c.CloseIdleConnections)
	repo, err := c.Namespace("oci://registry.test/charts", oci.Options{Insecure: true})
	if err != nil {
		tb.Fatal(err)
	}
	return repo, s, &connections
}

// IA7
func TestOCITenThousandTags(t *testing.T) {
	want := manyTags(10_000)
	repo, server, connections := tagRegistry(t, pagedTags(want, 100))
	got, err := repo.Tags(t.Context(), "podinfo")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d tags", len(got))
	}
	seen := map[string]bool{}
	for _, r := range server.Log.All() {
		if seen[r.URI] {
			t.Errorf("%s was asked for twice", r.URI)
		}
		seen[r.URI] = true
	}
	if len(seen) != 100 || connections.Load() != 1 {
		t.Errorf("%d pages over %d connections, want 100 over 1", len(seen), connections.Load())
	}
}

func TestOCITagLists(t *testing.T) {
	counter := 0
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
		hint    string
	}{
		{"no tags", func(w http.ResponseWriter, _ *http.Request) { page(w, "") },
			`could not get tags for "podinfo": unable to locate any tags in provided repository: oci://registry.test/charts/podinfo`, ""},
		{"null", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"name":"x","tags":null}`) }, "unable to locate any tags", ""},
		{"no versions", func(w http.ResponseWriter, _ *http.Request) { page(w, "", "latest", "v1.0.0") }, "unable to locate any tags", "none of its 2 tags is a semantic version"},
		{"a page that leads to itself", func(w http.ResponseWriter, r *http.Request) { page(w, r.URL.RequestURI(), "1.0.0") }, "leads back to a page", ""},
		{"two pages that lead to each other", func(w http.ResponseWriter, r *http.Request) {
			page(w, map[bool]string{true: "?last=b", false: "?last=a"}[r.URL.Query().Get("last") == "a"], "1.0.0")
		}, "leads back to a page", ""},
		{"pages without end", func(w http.ResponseWriter, _ *http.Request) {
			counter++
			page(w, "?last="+strconv.Itoa(counter), "1.0.0")
		}, "more than 200000 tags, or 5000 pages of them", ""},
		{"too many tags", func(w http.ResponseWriter, _ *http.Request) {
			counter++
			page(w, "?last="+strconv.Itoa(counter), manyTags(50_000)...)
		}, "more than 200000 tags", ""},
		{"another host", func(w http.ResponseWriter, _ *http.Request) {
			page(w, "http://evil.test/v2/charts/podinfo/tags/list", "1.0.0")
		}, "goes on at another host", ""},
		{"not JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }, "malformed", ""},
		{"a huge page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat(" ", 5<<20)) }, "exceeds 4194304 bytes", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			repo, server, _ := tagRegistry(t, test.handler)
			_, err := repo.Tags(t.Context(), "podinfo")
			wantError(t, err, test.want)
			if test.hint != "" {
				wantHint(t, err, test.hint)
			}
			if fetch.Transient(err) {
				t.Error("it is transient")
			}
			if n := len(server.Log.All()); n > 5000 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// §12 case 23
func TestOCIVersions(t *testing.T) {
	tags := []string{"0.0.1", "0.1.0", "0.1.1", "0.1.5_b.min.minute", "0.1.5_a.min.hour", "0.1.5_c.now", "0.2.0", "0.9.0", "0.10.0", "1.0.0", "1.1.0-rc.1", "latest", "v3.0.0"}
	repo, server, _ := tagRegistry(t, pagedTags(tags, 5))
	for _, test := range []struct{ version, want, failure string }{
		{"", "1.0.0", ""},
		{"*", "1.0.0", ""},
		{">=0.1.5", "1.0.0", ""},
		{"0.2.x", "0.2.0", ""},
		{"0.*", "0.10.0", ""},
		{">2.0.0", "", "could not locate a version matching provided version string >2.0.0"},
	} {
		t.Run("case 23: "+test.version, func(t *testing.T) {
			got, err := repo.Tags(t.Context(), "podinfo")
			if err != nil {
				t.Fatal(err)
			}
			c, err := resolve.ChooseFromTags(got, test.version)
			if test.failure != "" {
				wantError(t, err, test.failure)
			} else if err != nil || c.Version != test.want {
				t.Errorf("got %s, %v; want %s", c.Version, err, test.want)
			}
		})
	}
	if n := len(server.Log.All()); n != 6*3 {
		t.Errorf("%d requests", n)
	}
}

func BenchmarkOCITenThousandTags(b *testing.B) {
	tags := manyTags(10_000)
	repo, _, _ := tagRegistry(b, pagedTags(tags, 100))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := repo.Tags(b.Context(), "podinfo"); err != nil || len(got) != len(tags) {
			b.Fatal(len(got), err)
		}
	}
}
