package helmrepo

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

func TestNormalizeURL(t *testing.T) {
	for _, tt := range []struct{ name, raw, want, err string }{
		{name: "case 21: slash stays", raw: "http://example.com/", want: "http://example.com/"},
		{name: "case 21: slash is added", raw: "http://example.com", want: "http://example.com/"},
		{name: "case 21: slash is added to a path", raw: "http://example.com/charts", want: "http://example.com/charts/"},
		{name: "case 21: slashes collapse", raw: "http://example.com//", want: "http://example.com/"},
		{name: "case 21: many slashes collapse", raw: "https://example.com/charts////", want: "https://example.com/charts/"},
		{name: "case 21: empty", raw: "", want: ""},
		{name: "case 21: oci", raw: "oci://example.com", want: "oci://example.com"},
		{name: "case 21: oci is stripped", raw: "oci://example.com/charts//", want: "oci://example.com/charts"},
		{name: "case 21: query", raw: "http://example.com?x=y", want: "http://example.com/?x=y"},
		{name: "case 21: query after a slash", raw: "http://example.com/a/?st=pr", want: "http://example.com/a/?st=pr"},
		{name: "case 21: encoded slash", raw: "http://example.com/next%2Fpath", want: "http://example.com/next%2Fpath/"},
		{name: "case 21: encoded slash and slash", raw: "http://example.com/next%2Fpath//", want: "http://example.com/next%2Fpath/"},
		{name: "case 21: encoded slash at the end", raw: "http://example.com/a%2F", want: "http://example.com/a/"},
		{name: "case 21: bad", raw: "://badurl.", err: `parse "://badurl.": missing protocol scheme`},
		{name: "case 12: no scheme", raw: "127.0.0.1:80", err: `parse "127.0.0.1:80": first path segment in URL cannot contain colon`},
		{name: "secret", raw: "https://u:secret@h:p/?q=secret", err: `parse "https://u:REDACTED@h:p/?q=REDACTED": malformed user, password, host or port`},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.want, tt.err)(fetch.NormalizeURL(tt.raw)) })
	}
}

func check(t *testing.T, want, wantErr string) func(string, error) {
	return func(got string, err error) {
		t.Helper()
		var urlErr *url.Error
		switch {
		case wantErr == "" && err != nil:
			t.Errorf("got error %v", err)
		case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("got error %v, want %s", err, wantErr)
		case err != nil && !errors.As(err, &urlErr):
			t.Errorf("%T is no *url.Error", err)
		case got != want:
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func indexOf(repo string) (string, error) {
	u, err := auth.ParseURL(repo)
	if err != nil {
		return "", err
	}
	return indexURL(u).String(), nil
}

func TestIndexURL(t *testing.T) {
	for _, tt := range []struct{ repo, want, err string }{
		{repo: "https://h", want: "https://h/index.yaml"},
		{repo: "https://h/", want: "https://h/index.yaml"},
		{repo: "https://h/c?x=y", want: "https://h/c/index.yaml?x=y"},
		{repo: "https://h/next%2Fpath", want: "https://h/next%2Fpath/index.yaml"},
		{repo: "https://h//a/./b/../c//", want: "https://h/a/c/index.yaml"},
		{repo: "https://h/a/../../../b", want: "https://h/b/index.yaml"},
		{repo: "https://h/a#fragment", want: "https://h/a/index.yaml"},
		{repo: "https://h/a%20b", want: "https://h/a%20b/index.yaml"},
		{repo: "https://h:x/", err: "invalid port"},
	} {
		t.Run(tt.repo, func(t *testing.T) { check(t, tt.want, tt.err)(indexOf(tt.repo)) })
	}
}

func TestChartURL(t *testing.T) {
	for _, tt := range []struct{ name, repo, ref, want, err string }{
		{name: "case 24: relative", repo: "https://example.com", ref: "charts/foo-1.0.0.tgz", want: "https://example.com/charts/foo-1.0.0.tgz"},
		{name: "case 24: space", repo: "https://example.com", ref: "charts/foo 1.0.0.tgz", want: "https://example.com/charts/foo%201.0.0.tgz"},
		{name: "space in an absolute one", repo: "https://example.com", ref: "https://h/a b.tgz?c=d e", want: "https://h/a%20b.tgz?c=d%20e"},
		{name: "case 24: space in host", repo: "https://example.com", ref: "https://ex ample.com/foo-1.0.0.tgz", err: "invalid character \" \" in host name"},
		{name: "below the path", repo: "https://example.com/a/b", ref: "foo.tgz", want: "https://example.com/a/b/foo.tgz"},
		{name: "beside the path", repo: "https://example.com/a/b/", ref: "../foo.tgz", want: "https://example.com/a/foo.tgz"},
		{name: "from the root", repo: "https://example.com/a/b", ref: "/foo.tgz", want: "https://example.com/foo.tgz"},
		{name: "not above the root", repo: "https://example.com", ref: "../../foo.tgz", want: "https://example.com/foo.tgz"},
		{name: "absolute, verbatim", repo: "https://example.com?t=1", ref: "https://other//a/../b%2Fc.tgz?x", want: "https://other//a/../b%2Fc.tgz?x"},
		{name: "repository's query", repo: "https://example.com/?token=1", ref: "foo.tgz", want: "https://example.com/foo.tgz?token=1"},
		{name: "own query", repo: "https://example.com/?token=1", ref: "foo.tgz?own=2", want: "https://example.com/foo.tgz?own=2"},
		{name: "own query, no other", repo: "https://example.com/", ref: "foo.tgz?own=2", want: "https://example.com/foo.tgz?own=2"},
		{name: "other host", repo: "https://example.com/?token=1", ref: "//other/foo.tgz", want: "https://other/foo.tgz"},
		{name: "encoded", repo: "https://example.com/next%2Fpath", ref: "a%2Fb.tgz", want: "https://example.com/next%2Fpath/a%2Fb.tgz"},
		{name: "oci", repo: "https://example.com", ref: "oci://r/foo:1", want: "oci://r/foo:1"},
		{name: "not a URL", repo: "https://example.com", ref: "https://h:x/foo.tgz", err: "invalid port"},
		{name: "not a reference", repo: "https://example.com", ref: "foo:1/x:y", want: "foo:1/x:y"},
		{name: "colon", repo: "https://example.com", ref: "1.0:foo.tgz", err: "first path segment in URL cannot contain colon"},
	} {
		t.Run(tt.name, func(t *testing.T) { check(t, tt.want, tt.err)(ChartURL(tt.repo, tt.ref)) })
	}
}

func TestOpenHTTP(t *testing.T) {
	c := fetch.NewClient(fetch.Config{})
	if _, err := Open(c, "ftp://h", nil, Options{}); err == nil || finding.CodeOf(err) != finding.UnsupportedScheme || err.Error() != `scheme "ftp" not supported` {
		t.Errorf("case 12: got %v", err)
	}
	for _, raw := range []string{"http:///charts", "https://u:secret@/x", "http://:80/"} {
		_, err := Open(c, raw, nil, Options{})
		check(t, "", "no host in URL")("", err)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
}

// A relative reference stays on the repository's host, and a URL that is not refused can be requested.
func FuzzChartURL(f *testing.F) {
	f.Add("https://u:p@h/a?q=1", "foo-1.0.0.tgz")
	f.Add("https://h", "//other/x")
	f.Add("http://h:1/%2F", "../../%2e%2e/x?y#z")
	f.Add("http://h", "http:x")
	f.Fuzz(func(t *testing.T, repo, ref string) {
		h, err := Open(fetch.NewClient(fetch.Config{}), repo, nil, Options{})
		if err != nil {
			return
		}
		u, err := archiveURL(h.base, ref)
		if err != nil {
			return
		}
		parsed, err := url.Parse(ref)
		if err != nil {
			t.Fatalf("took %q: %v", ref, err)
		}
		if !parsed.IsAbs() && parsed.Host == "" && u.Host != h.base.Host {
			t.Errorf("%q of %q is on %q", ref, h.base, u.Host)
		}
		if u.Host != h.base.Host && u.RawQuery != parsed.RawQuery {
			t.Errorf("%q of %q takes the query along: %q", ref, h.base, u)
		}
		if _, err := url.Parse(u.String()); err != nil {
			t.Errorf("%q of %q: %v", ref, h.base, err)
		}
	})
}
