package helmrepo

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
)

// versions serves an index under a tag, and answers 304 to a request with this tag.
type versions struct {
	tag   string
	asked []string // If-None-Match of each request
	moved string   // where it redirects to
}

func (v *versions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.asked = append(v.asked, r.Header.Get("If-None-Match"))
	w.Header().Set("ETag", v.tag)
	switch {
	case v.moved != "":
		http.Redirect(w, r, v.moved, http.StatusFound)
	case v.tag != "" && r.Header.Get("If-None-Match") == v.tag:
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = io.WriteString(w, small)
	}
}

// TestModified: a server without tags names its files by the time of their last change, unless that was just now.
func TestModified(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		age  time.Duration
		want Tag
	}{{time.Hour, "modified Fri, 02 Jan 2026 02:04:05 GMT"}, {time.Minute, "modified Fri, 02 Jan 2026 03:03:05 GMT"}, {time.Second, ""}, {-time.Hour, ""}} {
		answer := &http.Response{Header: http.Header{
			"Date": {sent.Format(http.TimeFormat)}, "Last-Modified": {sent.Add(-tt.age).Format(http.TimeFormat)},
		}}
		got := tagOf(answer)
		if got != tt.want {
			t.Errorf("%s ago: %q, want %q", tt.age, got, tt.want)
		}
		r := &http.Request{Header: http.Header{}}
		got.ask(r)
		if asked := r.Header.Get("If-Modified-Since"); "modified "+asked != string(tt.want) && tt.want != "" || r.Header.Get("If-None-Match") != "" {
			t.Errorf("asked for another than that of %q", asked)
		}
	}
}

func TestIndexTag(t *testing.T) {
	for _, tt := range []struct {
		name, tag string
		known     Tag // by then
	}{
		{"strong", `"v1"`, `"v1"`},
		{"strange, but strong", `"a=b;c,#%~"`, `"a=b;c,#%~"`},
		{"weak: what is kept under it has a digest", `W/"v1"`, `W/"v1"`},
		{"weak, without quotes", `W/v1`, ""},
		{"none", "", ""},
		{"empty", `""`, ""},
		{"without quotes", "v1", ""},
		{"with spaces", `"v 1"`, ""},
		{"not ASCII", `"é"`, ""},
		{"too long", `"` + strings.Repeat("x", maxTag) + `"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			server := &versions{tag: tt.tag}
			w.Serve(t, "repo.test:80", server)
			h := repository(w, t, "http://repo.test", nil, Options{})
			_, tag, err := h.Index(t.Context(), new(fetchtest.Buffer), plenty, "")
			if tag != tt.known || err != nil {
				t.Errorf("first: tag %q, %v", tag, err)
			}
			offsets, tag, err := h.Index(t.Context(), new(fetchtest.Buffer), plenty, tag)
			if tt.known != "" && (!errors.Is(err, ErrNotModified) || fetch.Transient(err)) {
				t.Errorf("again: tag %q, %v", tag, err)
			}
			if tt.known == "" && (err != nil || offsets == nil) {
				t.Errorf("again: %v", err)
			}
			if len(server.asked) != 2 || server.asked[0] != "" || server.asked[1] != string(tt.known) {
				t.Errorf("asked for others than %q", server.asked)
			}
		})
	}
}

// A tag belongs to its server: it is not sent to another server, and another server's tag is not accepted.
func TestIndexTagElsewhere(t *testing.T) {
	w := fetchtest.NewWorld(t)
	there := &versions{tag: `"v1"`}
	w.Serve(t, "there.test:80", there)
	here := &versions{tag: `"v1"`, moved: "http://there.test/index.yaml"}
	w.Serve(t, "repo.test:80", here)
	h := repository(w, t, "http://repo.test", nil, Options{})
	offsets, tag, err := h.Index(t.Context(), new(fetchtest.Buffer), plenty, `"v1"`)
	if offsets == nil || tag != "" || err != nil {
		t.Errorf("tag %q, %v", tag, err)
	}
	if here.asked[0] != `"v1"` || there.asked[0] != "" {
		t.Errorf("asked %q and %q", here.asked, there.asked)
	}
}
