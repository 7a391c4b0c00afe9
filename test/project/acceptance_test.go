package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var acceptance = regexp.MustCompile(`\bIA([0-9]+)(?:[–-](?:IA)?([0-9]+))?`)

// TestAcceptanceNumbers searches the scripts and tests for the number of each acceptance case of image automation.
func TestAcceptanceNumbers(t *testing.T) {
	const cases = 40
	found := map[int]bool{}
	read := func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".txtar") && !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range acceptance.FindAllStringSubmatch(string(text), -1) {
			first, err := strconv.Atoi(m[1])
			if err != nil {
				return err
			}
			last := first
			if m[2] != "" {
				if last, err = strconv.Atoi(m[2]); err != nil {
					return err
				}
			}
			for n := first; n <= min(last, cases); n++ {
				found[n] = true
			}
		}
		return nil
	}
	for _, dir := range []string{"internal", filepath.Join("testdata", "script")} {
		if err := filepath.WalkDir(dir, read); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= cases; n++ {
		if !found[n] {
			t.Errorf("no script and no test names the case IA%d", n)
		}
	}
}
