package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/helmsrc/helmsrc/cmd"
)

// TestHelp runs every example of the help texts, those of a command one after the other in the world of testdata/help.txtar,
// which must contain every file that an example names.
func TestHelp(t *testing.T) {
	world, err := txtar.ParseFile(filepath.Join("testdata", "help.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	world.Comment = slices.Clip(world.Comment) // each script adds to it
	dir := t.TempDir()
	for path, examples := range helpExamples(t) {
		if len(examples) == 0 {
			t.Errorf("%s has no example", path)
		}
		script := *world
		for _, example := range examples {
			script.Comment = fmt.Appendf(script.Comment, "# %s\n%s\n", example, exampleCommand(t, example))
		}
		name := strings.ReplaceAll(path, " ", "_") + ".txtar"
		if err := os.WriteFile(filepath.Join(dir, name), txtar.Format(&script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Setup: setup, Cmds: scriptCommands, Condition: condition, RequireExplicitExec: true,
	})
}

var commandHeadings = regexp.MustCompile(`(?m)^(?:\w+ c|C)ommands(?: for [a-z ]+)?:$`)

// TestHelpColumns measures the help of every command, with all flags, without a terminal and at 80 columns.
func TestHelpColumns(t *testing.T) {
	for path := range helpExamples(t) {
		for line := range strings.Lines(help(t, append(strings.Fields(path)[1:], "--all"))) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
				t.Errorf("%s --help --all has a line of %d columns: %s", path, n, line)
			}
		}
	}
	for _, heading := range []string{"Input", "Selection", "Output", "Credential", "Limit", "Verification"} {
		if len(section(help(t, []string{"fetch", "--all"}), heading+" flags:")) == 0 {
			t.Errorf("the help of fetch has no group %q", heading+" flags")
		}
	}
}

// exampleCommand returns the line of a script for an example, without redirection of its output.
func exampleCommand(t *testing.T, example string) string {
	t.Helper()
	command, _, _ := strings.Cut(example, " > ")
	command, _, _ = strings.Cut(command, " | ")
	if !strings.HasPrefix(command, "helmsrc ") {
		t.Errorf("the example %q begins with something that no test can run", example)
	}
	return "exec " + command
}

// helpExamples returns the examples of all commands, by command.
func helpExamples(t *testing.T) map[string][]string {
	t.Helper()
	examples := map[string][]string{}
	var visit func(path []string)
	visit = func(path []string) {
		text := help(t, path)
		examples[strings.Join(append([]string{"helmsrc"}, path...), " ")] = section(text, "Examples:")
		for _, heading := range commandHeadings.FindAllString(text, -1) {
			for _, line := range section(text, heading) {
				if name, _, _ := strings.Cut(line, " "); name != "help" {
					visit(append(path[:len(path):len(path)], name))
				}
			}
		}
	}
	visit(nil)
	return examples
}

func help(t *testing.T, path []string) string {
	t.Helper()
	var out bytes.Buffer
	code := cmd.Run(t.Context(), &cmd.Env{
		Args: append(path, "--help"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		Terminal: func() (int, int, bool) { return 0, 0, false },
		Getenv:   func(string) string { return "" },
		Now:      time.Now,
		Program:  "helmsrc",
	})
	if code != 0 {
		t.Fatalf("help of %v: exit code %d\n%s", path, code, out.String())
	}
	return out.String()
}

// section returns the lines of a help text below a heading, up to the next empty one, without comments. Continued lines are
// joined.
func section(text, heading string) []string {
	_, rest, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		return nil
	}
	body, _, _ := strings.Cut(rest, "\n\n")
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(body, "\\\n", " ")) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
