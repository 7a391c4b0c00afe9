package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/store"
)

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	st, err := store.Open(dir, store.Options{
		Kinds: []string{"HelmChart", "HelmRepository", "HelmRelease"}, Shared: []string{"HelmRelease"},
		Now: func() time.Time { return time.Unix(1000, 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// put stores an object, without an artifact if the text is empty.
func put(t *testing.T, st *store.Store, key store.Key, text, failure string, at time.Time) {
	t.Helper()
	unlock, err := st.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	status := "{}"
	if text != "" {
		p, err := st.Create(key)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprint(p, text)
		a, err := p.Commit("app-1.0.0.tgz", "")
		if err != nil {
			t.Fatal(err)
		}
		status = fmt.Sprintf(`{"artifact": {"path": %q, "digest": %q, "size": %d, "lastUpdateTime": %q}}`, a.Path, a.Digest, len(text), at.UTC().Format(time.RFC3339))
	}
	if err := st.Remember(key, &store.Record{Object: json.RawMessage(`"` + key.String() + `"`), Status: json.RawMessage(status), Failure: failure}, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unlock(), st.Save(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// TestJoin checks which of two directories takes precedence, in both orders.
func TestJoin(t *testing.T) {
	early, late := time.Unix(10, 0), time.Unix(20, 0)
	chart, repository := store.NewKey("HelmChart", "apps", "app"), store.NewKey("HelmRepository", "apps", "repo")
	release := store.NewKey("HelmRelease", "apps", "app")
	type side struct {
		text, failure string
		at            time.Time
	}
	for _, tt := range []struct {
		name     string
		key      store.Key
		a, b     side
		want     string // the stored artifact, "" without one
		conflict string
		moved    bool
	}{
		{"equal", chart, side{"x", "", early}, side{"x", "", late}, "x", "", false},
		{"one failed", chart, side{"x", "", early}, side{"", "HS221", late}, "x", "", false},
		{"both failed", chart, side{"", "HS221", early}, side{"", "HS222", late}, "", "", false},
		{"other bytes", chart, side{"x", "", early}, side{"y", "", late}, "", "it differs between", false},
		{"without artifact", chart, side{"x", "", early}, side{"", "", late}, "", "artifact none (none)", false},
		{"a release", release, side{"", "HS221", early}, side{"", "HS221", late}, "", "", false},
		{"a source that moved", repository, side{"x", "", early}, side{"y", "", late}, "y", "", true},
		{"a source that failed later", repository, side{"x", "", early}, side{"y", "HS221", late}, "x", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, turned := range []bool{false, true} {
				dir := t.TempDir()
				a, b := open(t, filepath.Join(dir, "a")), open(t, filepath.Join(dir, "b"))
				put(t, a, tt.key, tt.a.text, tt.a.failure, tt.a.at)
				put(t, b, tt.key, tt.b.text, tt.b.failure, tt.b.at)
				from := []Directory{{"a", a}, {"b", b}}
				if turned {
					from[0], from[1] = from[1], from[0]
				}
				to := open(t, filepath.Join(dir, "to"))
				o := Options{
					Check: func(store.Key, *store.Record) error { return nil },
					Moves: func(kind string) bool { return kind == "helmrepository" }, Link: func(string) string { return "" }, Concurrency: 2,
				}
				out, err := Join(t.Context(), to, from, o)
				if err != nil {
					t.Fatal(err)
				}
				if a.SharedSize()+b.SharedSize()+to.SharedSize() != 0 {
					t.Error("records stay in memory")
				}
				if (len(out.Moved) == 1) != tt.moved {
					t.Errorf("moved: %v", out.Moved)
				}
				switch {
				case tt.conflict == "" && len(out.Failed) > 0:
					t.Errorf("failed: %v", out.Failed)
				case tt.conflict != "" && (len(out.Failed) != 1 || !strings.Contains(out.Failed[0].Err.Error(), tt.conflict)):
					t.Errorf("failed: %v, want %s", out.Failed, tt.conflict)
				}
				h, err := (&joining{options: o}).read(Directory{"to", to}, tt.key)
				switch {
				case tt.conflict != "":
					if err == nil {
						t.Error("what is in conflict was recorded")
					}
				case err != nil:
					t.Error(err)
				case tt.want == "" && h.artifact != nil:
					t.Errorf("there is an artifact: %v", h.artifact)
				case tt.want != "":
					if h.artifact == nil || h.artifact.Digest != godigest.FromString(tt.want).String() || to.Verify(h.artifact.Path, h.artifact.Digest) != nil {
						t.Errorf("the artifact is %v", h.artifact)
					}
				}
			}
		})
	}
}
