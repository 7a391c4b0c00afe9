package helmrepo

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

func TestProvenance(t *testing.T) {
	good := fetchtest.Files{"/foo.tgz.prov": "provenance"}
	for _, tt := range []struct {
		name          string
		first, second http.Handler
		want, wantErr string
		absent        bool
	}{
		{"first", good, fetchtest.Status(404), "provenance", "", false},
		{"second", fetchtest.Status(404), good, "provenance", "", false},
		{"none", fetchtest.Status(404), fetchtest.Status(410), "", "provenance file 'foo.tgz.prov': file does not exist", true},
		// A server that could not be reached may have it: that is not "unsigned".
		{"none and a failure", fetchtest.Status(404), fetchtest.Status(503), "", "503 Service Unavailable", false},
		{"a failure and none", fetchtest.Status(503), fetchtest.Status(404), "", "503 Service Unavailable", false},
		{"forbidden", fetchtest.Status(403), good, "", "403 Forbidden", false},
		{"too large", fetchtest.Files{"/foo.tgz.prov": strings.Repeat("x", fetch.MaxProvenanceBytes+1)}, good, "", "size exceeds '1048576' bytes limit", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := fetchtest.NewWorld(t)
			w.Serve(t, "one.test:80", tt.first)
			w.Serve(t, "two.test:80", tt.second)
			c := candidate("http://one.test/foo.tgz?key=canary", "http://two.test/foo.tgz")
			var dst fetchtest.Buffer
			err := repository(w, t, "http://repo.test", nil, Options{}).Provenance(t.Context(), c, &dst)
			if tt.wantErr != "" {
				fetchtest.WantError(t, err, tt.wantErr)
			} else if err != nil || dst.String() != tt.want {
				t.Errorf("got %q, %v", &dst, err)
			}
			if errors.Is(err, fs.ErrNotExist) != tt.absent {
				t.Errorf("absent: %v", !tt.absent)
			}
			if strings.Contains(tt.wantErr, "503") != fetch.Transient(err) && err != nil {
				t.Errorf("transient: %v", fetch.Transient(err))
			}
		})
	}
}

func TestDirProvenance(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"foo-1.0.0.tgz": "archive", "foo-1.0.0.tgz.prov": "provenance", "bar-1.0.0.tgz": "archive",
		// It is not beside the archive that is used.
		"charts/bar-1.0.0.tgz.prov": "provenance",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDirectory(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var dst fetchtest.Buffer
	if err := d.Provenance(t.Context(), candidate("https://elsewhere.test/foo-1.0.0.tgz"), &dst); err != nil || dst.String() != "provenance" {
		t.Errorf("got %q, %v", &dst, err)
	}
	for _, url := range []string{"charts/bar-1.0.0.tgz", "nowhere.tgz"} {
		c := resolve.Candidate{Name: "bar", Version: "1.0.0", URLs: []string{url}}
		if err := d.Provenance(t.Context(), c, &dst); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", url, err)
		}
	}
}
