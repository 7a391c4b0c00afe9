package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes the files of a module.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	good := map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26.0\n",
		"m.go":      "package m\n\nimport \"syscall\"\n\nvar _ = syscall.Getpid()\n",
		"m_test.go": "package m\n",
	}
	with := func(name, text string) map[string]string {
		files := map[string]string{name: text}
		for k, v := range good {
			if k != name {
				files[k] = v
			}
		}
		return files
	}
	for name, test := range map[string]struct {
		files map[string]string
		code  int
		says  []string
	}{
		"good":              {files: good},
		"missing elsewhere": {files: with("m.go", "package m\n\nimport \"syscall\"\n\nvar _ = syscall.Stat_t{}\n"), code: 1, says: []string{"windows: ", "m.go:5:", "Stat_t"}},
		"in a test":         {files: with("m_windows_test.go", "package m\n\nvar _ int = \"\"\n"), code: 1, says: []string{"windows: ", "m_windows_test.go:3:"}},
		"no package":        {files: map[string]string{"go.mod": good["go.mod"]}, code: 2, says: []string{"none below"}},
		"no module":         {files: nil, code: 1, says: []string{"windows: ", "main module"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr strings.Builder
			code := run([]string{module(t, test.files), "linux", "windows"}, &stderr)
			if code != test.code || (code == 0) != (stderr.Len() == 0) {
				t.Errorf("exit %d instead of %d:\n%s", code, test.code, &stderr)
			}
			if test.code == 1 && test.files != nil && strings.Contains(stderr.String(), "linux: ") {
				t.Errorf("an error of Windows is one of Linux:\n%s", &stderr)
			}
			for _, say := range test.says {
				if !strings.Contains(stderr.String(), say) {
					t.Errorf("%q is missing in:\n%s", say, &stderr)
				}
			}
		})
	}
	if code := run([]string{"."}, &strings.Builder{}); code != 2 {
		t.Errorf("exit %d without a system", code)
	}
}
