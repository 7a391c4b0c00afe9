package oci_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func TestOCIWhatIsNoChart(t *testing.T) {
	w := registries(t, `
-- registry/charts --
charts/legacy 1.0.0 layer=application/tar+gzip
charts/indexed 1.0.0 index
charts/signed 1.0.0 provenance
charts/image 1.0.0 config=application/vnd.oci.image.config.v1+json
charts/docker 1.0.0 config=application/vnd.docker.container.image.v1+json
charts/flux 1.0.0 config=application/vnd.cncf.flux.config.v1+json
charts/else 1.0.0 config=application/vnd.else.v1+json
charts/nolayer 1.0.0 layer=-
charts/image-index 1.0.0 index config=application/vnd.oci.image.config.v1+json
charts/tagged 1.0.0 tag=v1.0.0
charts/liar 1.0.0 sizelie=5
charts/lowliar 1.0.0 sizelie=-5
`)
	repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", plain)
	for _, test := range []struct{ chart, version, failure, hint string }{
		{"legacy", "1.0.0", "", ""},
		{"indexed", "1.0.0", "", ""},
		{"signed", "1.0.0", "", ""},
		{"tagged", "v1.0.0", "", ""},
		{"image", "1.0.0", "could not load config with mediatype application/vnd.cncf.helm.config.v1+json: it is a container image, not a Helm chart", "is spec.url the URL of the charts"},
		{"docker", "1.0.0", "it is a container image, not a Helm chart", ""},
		{"flux", "1.0.0", "it is a Flux artifact, not a Helm chart", "OCIRepository"},
		{"else", "1.0.0", "its config has mediatype application/vnd.else.v1+json", ""},
		{"nolayer", "1.0.0", "manifest does not contain a layer with mediatype application/vnd.cncf.helm.chart.content.v1.tar+gzip", ""},
		{"image-index", "1.0.0", "it is a container image", ""},
		{"liar", "1.0.0", "its size differs from its manifest", ""},
		{"lowliar", "1.0.0", "its size differs from its manifest", ""},
	} {
		t.Run(test.chart, func(t *testing.T) {
			m, archive, err := pull(t, repo, test.chart, test.version)
			if test.failure != "" {
				wantError(t, err, test.failure)
				if test.hint != "" {
					wantHint(t, err, test.hint)
				}
				if fetch.Transient(err) {
					t.Error("it is transient")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if godigest.FromBytes(archive) != m.Layer.Digest {
				t.Error("another archive")
			}
			if (m.Digest != m.Chart) != (test.chart == "indexed") {
				t.Errorf("digest %s, chart %s", m.Digest, m.Chart)
			}
			var prov memory
			err = repo.ProvenanceFile(t.Context(), m, &prov)
			if test.chart == "signed" {
				if err != nil || prov.String() != "provenance of signed\n" {
					t.Errorf("%q, %v", prov.String(), err)
				}
			} else {
				wantError(t, err, "file does not exist")
			}
		})
	}
}

func TestOCIBadManifests(t *testing.T) {
	const config = `"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "sha256:00", "size": 2}`
	layer := func(d string, size int) string {
		return fmt.Sprintf(`{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": %q, "size": %d}`, d, size)
	}
	good := godigest.FromString("x").String()
	for _, test := range []struct{ name, body, failure, hint string }{
		{"not JSON", "hello", "the manifest is not valid JSON", ""},
		{"HTML", "<!doctype html><html>login</html>", "the manifest is not valid JSON", "may not be a registry"},
		{"empty object", "{}", "could not load config with mediatype", ""},
		{"schema 1", `{"schemaVersion": 1, "fsLayers": []}`, "outdated schema version 1", ""},
		{"image and index at once", `{` + config + `, "manifests": []}`, "ambiguous", ""},
		{"empty index", `{"manifests": []}`, "the image index lists no manifest", ""},
		{"index without mediatype of its children", `{"manifests": [{"digest": "` + good + `", "size": 1}]}`, "the image index lists no manifest", ""},
		{"index with a malformed digest", `{"manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "../../x", "size": 1}]}`, "the image index lists no manifest", ""},
		{"no layers", `{` + config + `}`, "manifest does not contain minimum number of descriptors (2), descriptors found: 1", ""},
		{"layer without digest", `{` + config + `, "layers": [` + layer("", 1) + `]}`, "without a valid digest", ""},
		{"layer with a climbing digest", `{` + config + `, "layers": [` + layer("sha256:../../../x", 1) + `]}`, "without a valid digest", ""},
		{"negative size", `{` + config + `, "layers": [` + layer(good, -1) + `]}`, "without a valid digest", ""},
		{"oversized layer", `{` + config + `, "layers": [` + layer(good, 1<<30) + `]}`, "size of chart 'podinfo-1.0.0.tgz' exceeds '1048576' bytes limit", ""},
		{"oversized manifest", strings.Repeat(" ", 5<<20), "exceeds 4194304 bytes", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			repo, _ := handlerRegistry(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				_, _ = io.WriteString(w, test.body)
			})
			_, _, err := pull(t, repo, "podinfo", "1.0.0")
			wantError(t, err, test.failure)
			if test.hint != "" {
				wantHint(t, err, test.hint)
			}
			if fetch.Transient(err) {
				t.Error("it is transient")
			}
		})
	}
}

// handlerRegistry is a registry of a test's own making.
func handlerRegistry(t *testing.T, h http.HandlerFunc) (*oci.Namespace, *helmtest.Server) {
	t.Helper()
	w := helmtest.NewWorld(nil)
	s, err := helmtest.Serve(w.Network, "registry.test:80", nil, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return openOCI(t, ociClient(t, w), "oci://registry.test/charts", oci.Options{Insecure: true, NoProgress: time.Minute}), s
}

func TestOCIIndexChildren(t *testing.T) {
	manifests := map[string]string{}
	add := func(body string) string {
		d := godigest.FromString(body).String()
		manifests[d] = body
		return d
	}
	chart := add(`{"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json"}, "layers": [{"mediaType": "application/tar+gzip", "digest": "` + godigest.FromString("x").String() + `", "size": 1}]}`)
	image := add(`{"config": {"mediaType": "application/vnd.oci.image.config.v1+json"}, "layers": []}`)
	other := add(`{"config": {"mediaType": "application/vnd.cncf.helm.config.v1+json"}, "layers": [{"mediaType": "application/tar+gzip", "digest": "` + godigest.FromString("y").String() + `", "size": 1}]}`)
	child := func(d, more string) string {
		return `{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "` + d + `", "size": 1` + more + `}`
	}
	const amd64 = `, "platform": {"os": "linux", "architecture": "amd64"}`
	const arm64 = `, "platform": {"os": "linux", "architecture": "arm64"}`
	const attestation = `, "platform": {"os": "unknown", "architecture": "unknown"}`
	const artifact = `, "artifactType": "application/vnd.cncf.helm.config.v1+json"`
	list := func(children ...string) string { return `{"manifests": [` + strings.Join(children, ",") + `]}` }
	for _, test := range []struct {
		name, index, want string
		requests          int
	}{
		{"the one that says so", list(child(image, amd64), child(chart, artifact)), chart, 2},
		{"linux/amd64", list(child(other, arm64), child(chart, amd64)), chart, 2},
		{"the only chart", list(child(image, amd64), child(image, arm64), child(chart, "")), chart, 4},
		{"the first of two", list(child(chart, ""), child(other, "")), chart, 2},
		{"attestations last", list(child(image, attestation), child(chart, "")), chart, 2},
		{"none", list(child(image, amd64)), "", 2},
		{"too many", list(append(repeat(child(image, ""), 20), child(chart, ""))...), "", 9},
	} {
		t.Run(test.name, func(t *testing.T) {
			repo, server := handlerRegistry(t, func(w http.ResponseWriter, r *http.Request) {
				reference := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
				body, ok := manifests[reference]
				if !ok {
					body = test.index
				}
				_, _ = io.WriteString(w, body)
			})
			m, err := repo.Pin(t.Context(), "podinfo", "1.0.0")
			if test.want == "" {
				wantError(t, err, "it is a container image")
			} else if err != nil || m.Chart.String() != test.want || m.Digest != godigest.FromString(test.index) {
				t.Errorf("got %+v, %v", m, err)
			}
			if n := len(server.Log.All()); n != test.requests {
				t.Errorf("%d requests: %q", n, paths(server))
			}
		})
	}
}

func repeat(s string, n int) []string {
	var list []string
	for range n {
		list = append(list, s)
	}
	return list
}

func TestOCIFaults(t *testing.T) {
	const manifests, blobs, tags = "/v2/charts/podinfo/manifests/*", "/v2/charts/podinfo/blobs/*", "/v2/charts/podinfo/tags/list"
	for _, test := range []struct {
		name, faults string
		failure      string // empty: it works in the end
		integrity    bool
		transient    bool
		requests     int // to the registry, by pull
	}{
		{"manifest: 503 twice", `{"` + manifests + `": [{"status": 503}, {"status": 503}]}`, "", false, false, 4},
		{"manifest: 503 always", `{"` + manifests + `": {"status": 503}}`, "503 Service Unavailable", false, true, 4},
		{"manifest: 429 once", `{"` + manifests + `": [{"status": 429, "header": {"Retry-After": "1"}}]}`, "", false, false, 3},
		{"manifest: reset", `{"` + manifests + `": [{"reset": true}]}`, "", false, false, 3},
		{"manifest: flipped", `{"` + manifests + `": {"flip": 3}}`, "manifest has the wrong content: computed digest doesn't match", true, false, 1},
		{"manifest: truncated once", `{"` + manifests + `": [{"truncate": 10}]}`, "", false, false, 3},
		{"manifest: endless", `{"` + manifests + `": {"endless": true}}`, "exceeds 4194304 bytes", false, false, 1},
		{"blob: 500 once", `{"` + blobs + `": [{"status": 500}]}`, "", false, false, 3},
		{"blob: truncated once", `{"` + blobs + `": [{"truncate": 100}]}`, "", false, false, 3},
		{"blob: truncated always", `{"` + blobs + `": {"truncate": 100}}`, "unexpected EOF", false, true, 5},
		{"blob: flipped", `{"` + blobs + `": {"flip": 100}}`, "has the wrong content: computed digest doesn't match", true, false, 2},
		{"blob: endless", `{"` + blobs + `": {"endless": true}}`, "its size differs from its manifest", true, false, 2},
		{"blob: 404", `{"` + blobs + `": {"status": 404, "body": "{\"errors\":[{\"code\":\"BLOB_UNKNOWN\",\"message\":\"blob unknown to registry\"}]}"}}`,
			"no such blob in the registry: 404 Not Found: blob unknown to registry", false, false, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/faults.json --\n"+test.faults+"\n")
			repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", plain)
			_, _, err := pull(t, repo, "podinfo", "6.7.1")
			if n := len(w.Servers["registry"].Log.All()); n != test.requests {
				t.Errorf("%d requests: %q", n, paths(w.Servers["registry"]))
			}
			if test.failure == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, test.failure)
			var integrity interface{ Integrity() bool }
			if got := errors.As(err, &integrity) && integrity.Integrity(); got != test.integrity {
				t.Errorf("integrity %v: %v", got, err)
			}
			if fetch.Transient(err) != test.transient {
				t.Errorf("transient %v: %v", fetch.Transient(err), err)
			}
		})
	}
	t.Run("tags: the failing page is requested again, not the list", func(t *testing.T) {
		w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/faults.json --\n"+`{"`+tags+`": [{"status": 502}]}`)
		if _, err := openOCI(t, ociClient(t, w), "oci://registry.test/charts", plain).Tags(t.Context(), "podinfo"); err != nil {
			t.Error(err)
		}
	})
	t.Run("down", func(t *testing.T) {
		w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/down --\n")
		_, _, err := pull(t, openOCI(t, ociClient(t, w), "oci://registry.test/charts", plain), "podinfo", "6.7.1")
		wantError(t, err, "connection refused")
		if !fetch.Transient(err) {
			t.Error("it is not transient")
		}
	})
	t.Run("no such host", func(t *testing.T) {
		w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n")
		_, _, err := pull(t, openOCI(t, ociClient(t, w), "oci://nowhere.test/charts", plain), "podinfo", "6.7.1")
		wantError(t, err, "no such host")
		if !fetch.Transient(err) {
			t.Error("it is not transient")
		}
	})
}

func TestOCINoProgress(t *testing.T) {
	for _, test := range []struct{ name, faults string }{
		{"manifest hangs", `{"/v2/charts/podinfo/manifests/*": {"hang": true}}`},
		{"manifest stalls", `{"/v2/charts/podinfo/manifests/*": {"stall": 10}}`},
		{"blob hangs", `{"/v2/charts/podinfo/blobs/*": {"hang": true}}`},
		{"blob stalls", `{"/v2/charts/podinfo/blobs/*": {"stall": 100}}`},
		{"token server hangs", `{"/v2/charts/podinfo/manifests/*": {"status": 401, "header": {"WWW-Authenticate": "Bearer realm=\"http://registry.test/hang\""}}, "/hang": {"hang": true}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/faults.json --\n"+test.faults+"\n")
			c := oci.NewClient(fetch.NewClient(fetch.Config{Dial: w.Network.Dial, Now: time.Now}))
			t.Cleanup(c.CloseIdleConnections)
			repo := openOCI(t, c, "oci://registry.test/charts", oci.Options{Insecure: true, NoProgress: 100 * time.Millisecond})
			_, _, err := pull(t, repo, "podinfo", "6.7.1")
			wantError(t, err, "no-progress limit of 100ms exceeded")
			if !fetch.Transient(err) {
				t.Error("it is not transient")
			}
		})
	}
	t.Run("slow is not stuck", func(t *testing.T) {
		// Each byte comes well within the limit, all of them together do not.
		w := registries(t, "-- registry/charts --\ncharts/podinfo 6.7.1\n-- registry/faults.json --\n"+`{"/v2/charts/podinfo/tags/list": {"dribble": "20ms"}}`)
		repo := openOCI(t, ociClient(t, w), "oci://registry.test/charts", oci.Options{Insecure: true, NoProgress: 500 * time.Millisecond})
		if _, err := repo.Tags(t.Context(), "podinfo"); err != nil {
			t.Error(err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		entered := make(chan struct{})
		repo, _ := handlerRegistry(t, func(_ http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		_, err := repo.Tags(ctx, "podinfo")
		if !errors.Is(err, context.Canceled) || fetch.Transient(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestOCIRefusals(t *testing.T) {
	for _, test := range []struct {
		name              string
		code              int
		contentType, body string
		want, hint        string
		auth, transient   bool
		chart             string
	}{
		{"401 JSON", 401, "application/json", `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, "401 Unauthorized: authentication required", "log in with", true, false, ""},
		{"401 text", 401, "text/plain", "Unauthorized\n", "401 Unauthorized: Unauthorized", "log in with", true, false, ""},
		{"403 JSON", 403, "application/json", `{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}`, "403 Forbidden: requested access to the resource is denied", "log in with", true, false, ""},
		{"403 HTML", 403, "text/html", "<html><head><title>403 Forbidden</title></head></html>", "403 Forbidden: 403 Forbidden", "log in with", true, false, ""},
		{"404 repository", 404, "application/json", `{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry"}]}`, "no such repository in the registry: 404 Not Found: repository name not known to registry", "", false, false, ""},
		{"404 tag", 404, "application/json", `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`, "no such tag in the registry: 404 Not Found: manifest unknown", "", false, false, ""},
		{"404 HTML", 404, "text/html", "<html><title>Not Found</title>", "404 Not Found: Not Found", "'registry.test' may not be a registry", false, false, ""},
		{"404, chart's name in the URL", 404, "application/json", `{"errors":[{"code":"NAME_UNKNOWN","message":"unknown"}]}`, "no such repository", "spec.url ends in the chart's name, which is appended to it: use oci://registry.test", false, false, "charts"},
		{"429 text", 429, "text/plain", "slow down", "429 Too Many Requests: slow down", "a login may raise the limit", false, true, ""},
		{"429 Docker Hub", 429, "application/json", `{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit."}]}`, "429 Too Many Requests: You have reached your pull rate limit.", "a login may raise", false, true, ""},
		{"500 empty", 500, "", "", "500 Internal Server Error", "", false, true, ""},
		{"418", 418, "", "", "418 I'm a teapot", "", false, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			repo, _ := handlerRegistry(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}
				w.WriteHeader(test.code)
				_, _ = io.WriteString(w, test.body)
			})
			chart := test.chart
			if chart == "" {
				chart = "podinfo"
			}
			_, _, err := pull(t, repo, chart, "1.0.0")
			wantError(t, err, test.want)
			if test.hint != "" {
				wantHint(t, err, test.hint)
			}
			if fetch.AuthFailure(err) != test.auth || fetch.Transient(err) != test.transient {
				t.Errorf("auth failure %v, transient %v", fetch.AuthFailure(err), fetch.Transient(err))
			}
		})
	}
}

func TestOCITokenServerLoop(t *testing.T) {
	var tokens atomic.Int64
	repo, server := handlerRegistry(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			fmt.Fprintf(w, `{"token":"t%d"}`, tokens.Add(1))
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://registry.test/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	_, _, err := pull(t, repo, "podinfo", "1.0.0")
	wantError(t, err, "401 Unauthorized")
	if n := len(server.Log.All()); n != 3 {
		t.Errorf("%d requests: %q", n, paths(server))
	}
}

func TestOCIArchiveOfAnIndexEntry(t *testing.T) {
	w := registries(t, someCharts)
	c := ociClient(t, w)
	m, archive, err := pull(t, openOCI(t, c, "oci://registry.test/charts", plain), "podinfo", "6.7.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, ref, version string
		want               digest.Digest
		failure            string
	}{
		{"with a tag", "oci://registry.test/charts/podinfo:6.7.1", "", m.Layer.Digest, ""},
		{"without a tag", "oci://registry.test/charts/podinfo", "6.7.1", m.Layer.Digest, ""},
		{"with a digest", "oci://registry.test/charts/podinfo@" + m.Digest.String(), "6.7.1", "", ""},
		{"with both", "oci://registry.test/charts/podinfo:6.7.1@" + m.Digest.String(), "6.7.1", "", ""},
		{"another digest in the index", "oci://registry.test/charts/podinfo:6.7.1", "", godigest.FromString("x"), "does not have the digest in the index: computed digest doesn't match"},
		{"digest of another kind", "oci://registry.test/charts/podinfo:6.7.1", "", godigest.SHA512.FromBytes(archive), ""},
		{"another digest of another kind", "oci://registry.test/charts/podinfo:6.7.1", "", godigest.SHA512.FromString("x"), "does not have the digest in the index: computed digest doesn't match"},
		{"another version", "oci://registry.test/charts/podinfo:9.9.9", "", "", "no such tag in the registry"},
		{"no repository", "oci://registry.test", "1.0.0", "", "invalid OCI registry URL"},
		{"credentials", "oci://user:canary@registry.test/a", "1.0.0", "", "invalid OCI registry URL: oci://user:REDACTED@registry.test/a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var dst memory
			candidate := resolve.Candidate{URLs: []string{test.ref}, Version: test.version, Digest: test.want.String()}
			err := c.Candidate(t.Context(), candidate, fetch.DigestEnforce, plain, &dst, mebibyte)
			if test.failure != "" {
				wantError(t, err, test.failure)
				return
			}
			if err != nil || dst.String() != string(archive) {
				t.Error(err)
			}
		})
	}
}

func TestOCIURLs(t *testing.T) {
	c := oci.NewClient(fetch.NewClient(fetch.Config{Now: time.Now}))
	for _, test := range []struct{ url, failure, hint string }{
		{"oci://ghcr.io/org/charts", "", ""},
		{"oci://ghcr.io/org/charts/", "", ""},
		{"oci://ghcr.io", "", ""},
		{"oci://localhost:5000/x", "", ""},
		{"oci://[::1]:5000/x", "", ""},
		{"https://unsupported", "invalid OCI registry URL: https://unsupported", "must be oci://unsupported"},
		{"http://user:canary@h/x?token=canary", "invalid OCI registry URL: http://user:REDACTED@h/x?token=REDACTED", "oci://user:REDACTED@h/x?token=REDACTED"},
		{"", "invalid OCI registry URL: ", "begin with oci://"},
		{"oci://", "no host in it", ""},
		{"oci:///x", "no host in it", ""},
		{"oci://user:canary@ghcr.io/x", "credentials in the URL are not used", "spec.secretRef"},
		{"oci://ghcr.io/x?token=canary", "it must end with the path", ""},
		{"oci://ghcr.io/x#canary", "it must end with the path", ""},
		{"oci://ghcr.io/org/chart:1.0.0", "not the name of a repository", "the version goes into the chart's spec.version"},
		{"oci://ghcr.io/Org/charts", "not the name of a repository", "lower case: org/charts"},
		{"oci://ghcr.io/a b", "", ""},
	} {
		_, err := c.Namespace(test.url, oci.Options{})
		if test.url == "oci://ghcr.io/a b" {
			test.failure = "not the name of a repository"
		}
		if test.failure == "" {
			if err != nil {
				t.Errorf("%s: %v", test.url, err)
			}
			continue
		}
		var refused *finding.Problem
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.failure) || strings.Contains(err.Error()+refused.Hint(), "canary") {
			t.Errorf("%s: got %v, want %q", test.url, err, test.failure)
			continue
		}
		wantHint(t, err, test.hint)
	}
}

func TestOCIBadReferences(t *testing.T) {
	repo, server := handlerRegistry(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, test := range []struct{ chart, version, want string }{
		{"podinfo", "", `"" cannot be a tag`},
		{"podinfo", "../x", `"../x" cannot be a tag`},
		{"podinfo", "1.0.0?x=y", `cannot be a tag`},
		{"podinfo", strings.Repeat("1", 200), `cannot be a tag`},
		{"../../x y", "1.0.0", "not the name of a repository"},
		{"UPPER", "1.0.0", "not the name of a repository"},
	} {
		_, err := repo.Pin(t.Context(), test.chart, test.version)
		wantError(t, err, test.want)
	}
	_, err := repo.PinDigest(t.Context(), "podinfo", "sha256:nonsense")
	wantError(t, err, "malformed digest")
	if got := server.Log.All(); len(got) != 0 {
		t.Errorf("requests: %q", helmtest.Strings(got))
	}
}

func page(w http.ResponseWriter, next string, tags ...string) {
	if next != "" {
		w.Header().Set("Link", "<"+next+`>; rel="next"`)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "x", "tags": tags})
}
