//go:build unix

package chart

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe would block the process that opens it: it is refused before that, unless it is ignored.
func TestLoadDirRefusesIrregularFiles(t *testing.T) {
	s := source(t, "c/Chart.yaml", minimal)
	if err := unix.Mkfifo(filepath.Join(s.Root.Name(), "c", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.LoadDir("c")
	want := "failed to load files from /c: cannot load irregular file pipe as it has file mode type bits set" // §12 case 40
	if err == nil || err.Error() != want {
		t.Errorf("got error %v", err)
	}
	if _, err := s.Find("c/pipe"); err == nil || err.Error() != "'/c/pipe' is neither a directory nor a file" {
		t.Errorf("got error %v", err)
	}
	if _, err := s.Load("c/pipe"); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("got error %v", err)
	}
	if _, err := s.Open(&Found{Path: "c/pipe"}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got error %v", err)
	}
	if _, _, err := s.MergeValues("c", []string{"c/pipe"}, true); err == nil || !strings.HasPrefix(err.Error(), "no values file found at path '/c/pipe'") {
		t.Errorf("got error %v", err)
	}
	if err := s.Root.WriteFile("c/.helmignore", []byte("pipe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LoadDir("c"); err != nil {
		t.Error(err)
	}
}
