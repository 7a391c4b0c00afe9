package program

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/cmd"
)

// silentCommand matches the commands that print no manifest on stdout: only texts of the program, or nothing.
var silentCommand = regexp.MustCompile(`^(helmsrc|bundle|(cache|completion|config)( .*)?|explain|artifacts( prune)?|validate|version)$`)

// runnerRows returns the arguments of commands in the world of github_stdout.txtar.
func runnerRows() map[string]string {
	return map[string]string{
		"fetch": "-f c", "resolve": "-R -f fleet/clusters", "verify": "-R -f fleet/clusters", "artifacts status": "", "artifacts verify": "",
		"plan": "-f c --against older --diff", "template": "-f c --helm $HELM", "values": "-f c",
		"versions": "-f c HelmRelease/app", "why": "-f c HelmRelease/app", "outdated": "-R -f fleet/clusters",
		"lock": "-R -f fleet/clusters", "update": "-f c --level major --dry-run", "migrate": "-f c --dry-run",
		"artifacts merge": "artifacts -d merged", "tree": "-R -f fleet/clusters",
		"mirror": "-R -f fleet/clusters --lock-file mirror.lock --to oci://registrymirror.test/all --plain-http --rewrite --dry-run",
	}
}

// TestRunnerReads runs each command that prints on stdout in each of its formats. A new command or format needs a row, because
// both lists are those of the program.
func TestRunnerReads(t *testing.T) {
	world, err := txtar.ParseFile(filepath.Join("testdata", "script", "github_stdout.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir, rows := t.TempDir(), runnerRows()
	for path := range helpExamples(t) {
		name := strings.TrimPrefix(path, "helmsrc ")
		row, ok := rows[name]
		if !ok {
			if !silentCommand.MatchString(name) {
				t.Errorf("%s prints on stdout and has no row", path)
			}
			continue
		}
		script := *world
		script.Comment = []byte("helm\nmkdir fleet/.git\nexec helmsrc fetch -f c\nexec helmsrc lock -R -f fleet/clusters --lock-file mirror.lock\nenv GITHUB_ACTIONS=true\n")
		for _, format := range append(outputFormats(t, name), "") {
			script.Comment = append(script.Comment, runnerLines(name, row, format)...)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), txtar.Format(&script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Setup: setup, Cmds: scriptCommands, Condition: condition, RequireExplicitExec: true,
	})
}

// runnerLines require that the command quotes hostile text, and that no line of its output is a command of the runner.
func runnerLines(name, args, format string) string {
	switch format {
	case "":
	case "jsonpath=":
		format = "'jsonpath={@}'"
	case "go-template=":
		format = "'go-template={{.}}'"
	}
	line := "exec helmsrc " + name + " " + args
	if format != "" {
		line += " -o " + format
	}
	line += "\n! stdout '^\\s*::|##\\['\n! stderr '^\\s*::(set|stop|add)|##\\['\n"
	switch {
	case name == "mirror": // whose documents contain only names of the registry
		line += "stderr 'clusters/## \\[add-mask\\]x/all.yaml'\n"
	case name == "lock":
		line += "! stdout .\nstderr 'clusters/## \\[add-mask\\]x: HelmChart apps/app'\n"
	case strings.Contains(" yaml json jsonl ", " "+format+" "):
		line += "stdout 'add-mask\\]x'\n"
	}
	return line
}

// outputFormats returns the formats that the completion of -o offers, nil for a command without the flag.
func outputFormats(t *testing.T, name string) []string {
	t.Helper()
	var out bytes.Buffer
	cmd.Run(t.Context(), &cmd.Env{
		Args: slices.Concat([]string{"__complete"}, strings.Fields(name), []string{"-o", ""}), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &bytes.Buffer{},
		Terminal: func() (int, int, bool) { return 0, 0, false }, Getenv: func(string) string { return "" }, Now: time.Now, Program: "helmsrc",
	})
	var formats []string
	for line := range strings.Lines(out.String()) {
		format, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if format != "" && !strings.HasPrefix(format, ":") {
			formats = append(formats, format)
		}
	}
	return formats
}
