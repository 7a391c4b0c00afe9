package diff

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiffApplies: git applies the output of Unified, byte for byte, for any text. IA36.
func TestDiffApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	lines := []string{"a: 1\n", "b: 2\r\n", "\n", "c: é\n", "- x\n", "  y\n"}
	for range 60 {
		before, after := "", ""
		for range r.IntN(40) {
			line := lines[r.IntN(len(lines))]
			switch r.IntN(8) {
			case 0:
				before += line
			case 1:
				after += line
			case 2:
				before, after = before+line, after+lines[r.IntN(len(lines))]
			default:
				before, after = before+line, after+line
			}
		}
		if r.IntN(2) == 0 {
			before, after = before+"end", after+"end"
		}
		if before == "" || after == "" {
			continue
		}
		dir := t.TempDir()
		name := filepath.Join(dir, "f.yaml")
		if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		diff := Unified("a/f.yaml", "b/f.yaml", []byte(before), []byte(after), nil)
		if before == after {
			if diff != "" {
				t.Errorf("%q", diff)
			}
			continue
		}
		cmd := exec.CommandContext(t.Context(), git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(diff)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s\nfrom %q", err, out, diff, before)
		}
		if got, _ := os.ReadFile(name); string(got) != after {
			t.Fatalf("%q became %q, want %q", before, got, after)
		}
	}
}

// TestDiffHides: omitted lines are not in the diff, and changed lines are in it as show returns them.
func TestDiffHides(t *testing.T) {
	before := "secret: 1\nsecret: 2\nopen: 3\nchange: 4\nopen: 5\nsecret: 6\n"
	diff := Unified("a/f", "b/f", []byte(before), []byte(strings.Replace(before, "4", "5", 1)), func(line int, text string, edited bool) string {
		switch {
		case edited && line == 4:
			return strings.ToUpper(text)
		case line < 3 || line == 6:
			return ""
		}
		return text
	})
	if strings.Contains(diff, "secret") || !strings.Contains(diff, " open: 3\n-CHANGE: 4\n+CHANGE: 5\n open: 5\n") {
		t.Error(diff)
	}
}

// TestUnifiedBounds: texts that differ in too many lines are replaced, line by line if that is possible.
func TestUnifiedBounds(t *testing.T) {
	many := func(s string) []byte { return []byte(strings.Repeat(s+"1\n"+s+"2\n", 2*maxEdits)) }
	if got := Unified("a", "b", many("x"), append(many("y"), '\n'), nil); !strings.Contains(got, "-x2\n+y1\n") {
		t.Errorf("texts without a common line are not replaced as a whole: %.200q", got)
	}
	long := func(s string) []byte { return []byte(strings.Repeat(s+"\nstays\n", 2*maxEdits)) }
	if got := Unified("a", "b", long("x"), long("y"), nil); !strings.Contains(got, "-x\n+y\n stays\n") {
		t.Errorf("lines that stay are replaced: %.200q", got)
	}
}

// TestDiffReplaced: a new line is shown by the rules of the line that it replaces, also between other changed lines.
func TestDiffReplaced(t *testing.T) {
	before := "a: 1\nsecret: 2\nb: 3\nstays\n"
	after := "a: 4\nsecret: 5\nb: 6\nc: 7\nstays\n"
	diff := Unified("a/f", "b/f", []byte(before), []byte(after), func(line int, text string, _ bool) string {
		if line == 2 {
			return "hidden\n"
		}
		return text
	})
	if !strings.Contains(diff, "-a: 1\n-hidden\n-b: 3\n+a: 4\n+hidden\n+b: 6\n+c: 7\n stays\n") {
		t.Error(diff)
	}
}
