package cmd

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
)

var updateFiles = flag.Bool("update", false, "rewrite the generated files")

// run runs a command line without a network, in the working directory of the test.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	code = Run(t.Context(), &Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &log,
		Terminal: func() (int, int, bool) { return 0, 0, false },
		Getenv:   func(string) string { return "" },
		Now:      func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Program:  "helmsrc",
	})
	return code, out.String(), log.String()
}

// TestSchemaIsUpToDate compares the published schema with the flags: go test ./cmd -update writes it.
func TestSchemaIsUpToDate(t *testing.T) {
	code, want, log := run(t, "config", "schema")
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	name := filepath.Join("..", "schema", "helmsrc.schema.json")
	if *updateFiles {
		if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))) != want {
		t.Errorf("%s is not what the flags say: go test ./cmd -run TestSchemaIsUpToDate -update", name)
	}
}

// schemaFile is the URL of the schema during compilation.
const schemaFile = "helmsrc.schema.json"

func configSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	code, text, log := run(t, "config", "schema")
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaFile, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// TestConfigurationAndSchemaAgree validates the same files with the program and the published schema.
func TestConfigurationAndSchemaAgree(t *testing.T) {
	compiled := configSchema(t)
	tests := []struct {
		name, text string
		valid      bool
	}{
		{"empty", "", true},
		{"every type", "filename: [clusters/, apps]\nrecursive: true\nconcurrency: 4\ntimeout: 10m\nhelm-index-max-size: 60Mi\nhelm-chart-max-size: 1000\nverbose: 1\n", true},
		{"one value for a list", "filename: clusters/\n", true},
		{"a section", "commands:\n  fetch: {output: table}\n  verify: {output: json}\n", true},
		{"an empty list", "source: []\n", true},
		{"an unknown key", "tiemout: 3m\n", false},
		{"an unknown command", "commands: {fetsh: {}}\n", false},
		{"a flag that the command has not", "commands: {validate: {refresh: true}}\n", false},
		{"flags that no file has", "config: other.yaml\n", false},
		{"help", "help: true\n", false},
		{"a list", "- filename\n", false},
		{"text", "filename\n", false},
		{"a quoted boolean", "recursive: \"true\"\n", false},
		{"a number as text", "namespace: 5\n", false},
		{"text as a number", "concurrency: many\n", false},
		{"a fraction", "concurrency: 1.5\n", false},
		{"a choice that there is not", "output: xml\n", false},
		{"a choice that there is not, in a section", "commands: {fetch: {missing-secrets: perhaps}}\n", false},
		{"a list for one value", "namespace: [a, b]\n", false},
		{"a map in a list", "filename: [{a: b}]\n", false},
		{"a time without a unit", "timeout: \"5\"\n", false},
		{"a map for a value", "timeout: {minutes: 5}\n", false},
		{"nothing for a value", "timeout:\n", false},
		{"a section that is a list", "commands: [fetch]\n", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "c.yaml", test.text)
			code, _, log := run(t, "config", "--config", "c.yaml")
			// Some values are validated only by the command that uses them.
			if code == exit.OK && !test.valid {
				write(t, "empty.yaml", "")
				code, _, log = run(t, "fetch", "-f", "empty.yaml", "--allow-empty", "--config", "c.yaml")
			}
			if ok := code == exit.OK; ok != test.valid {
				t.Errorf("helmsrc: exit code %d\n%s", code, log)
			}
			if err := compiled.Validate(yamlValue(t, test.text)); (err == nil) != test.valid {
				t.Errorf("schema: %v", err)
			}
		})
	}
}

// yamlValue returns a document in the types of JSON.
func yamlValue(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEffectiveConfigurationIsOne reads the output of config as a configuration file: the values stay the same.
func TestEffectiveConfigurationIsOne(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "c.yaml", "filename: [a b.yaml, \"c: d\"]\nconcurrency: 3\nnamespace: \"5\"\ncommands: {fetch: {events: true}, verify: {retries: 0}}\n")
	code, first, log := run(t, "config", "--config", "c.yaml")
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	if err := configSchema(t).Validate(yamlValue(t, first)); err != nil {
		t.Error(err)
	}
	write(t, "d.yaml", first)
	code, second, log := run(t, "config", "--config", "d.yaml")
	if code != exit.OK {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	if !jsonEqual(yamlValue(t, first), yamlValue(t, second)) {
		t.Errorf("first\n%s\nsecond\n%s", first, second)
	}
}

func jsonEqual(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// TestFlagsOfOneNameAreOfOneType: a key of the file applies to all commands, so their flags must have the same type.
func TestFlagsOfOneNameAreOfOneType(t *testing.T) {
	types := map[string]string{}
	for _, c := range newRootCommand(&app{env: &Env{Program: "helmsrc"}, console: console.New(nil)}).Commands() {
		if c.Flags().Lookup("filename") == nil {
			continue
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if known, ok := types[f.Name]; ok && known != f.Value.Type() {
				t.Errorf("--%s of %s is of type %s, elsewhere of %s", f.Name, c.Name(), f.Value.Type(), known)
			}
			types[f.Name] = f.Value.Type()
		})
	}
	if len(types) < 50 {
		t.Errorf("%d flags were compared", len(types))
	}
}

// TestFoundConfigurationIsConfined: a configuration file of a repository cannot refer to files outside of it.
func TestFoundConfigurationIsConfined(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in", "x.yaml"), "")
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "none"), filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for text, allowed := range map[string]bool{
		"artifacts-dir: in/artifacts":                           true,
		"artifacts-dir: .":                                      true,
		"filename: ['in/*.yaml', '-']":                          true,
		"source: [HelmRepository/a=in]":                         true,
		"artifacts-dir: ../artifacts":                           false,
		"artifacts-dir: in/../../x":                             false,
		"artifacts-dir: link/x":                                 false,
		"artifacts-dir: dangling":                               false,
		"artifacts-dir: .GIT/x":                                 false,
		"filename: [" + filepath.ToSlash(outside) + "]":         false,
		"source: [HelmRepository/a=..]":                         false,
		"source: [HelmRepository/a=link]":                       false,
		"commands: {fetch: {artifacts-dir: ../x}}":              false,
		"commands: {fetch: {registry-config: in/x.yaml}}":       false,
		"keyring: in/x.yaml":                                    false,
		"missing-secrets: ambient":                              false,
		"exit-zero: true":                                       false,
		"index-digest: ignore":                                  false,
		"require-verification: true\nambient-credentials: true": false,
	} {
		write(t, config.Name, text)
		code, _, log := run(t, "config")
		if ok := code == exit.OK; ok != allowed {
			t.Errorf("%s: exit code %d\n%s", text, code, log)
		}
		if code, _, log := run(t, "config", "--config", config.Name); code != exit.OK {
			t.Errorf("%s, named: exit code %d\n%s", text, code, log)
		}
	}
}

// TestConfigurationIsBounded refuses files that are larger than any real one.
func TestConfigurationIsBounded(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"large":     "# " + strings.Repeat("x", 1<<20),
		"aliases":   "filename: &a [x]\nsource: *a\n",
		"anchor":    "timeout: &a 5m\n",
		"merge":     "<<: {timeout: 5m}\n",
		"documents": "timeout: 5m\n---\ntimeout: 6m\n",
		"twice":     "timeout: 5m\ntimeout: 6m\n",
		"broken":    "timeout: [5m\n",
		"binary":    "\x00\x01",
	} {
		write(t, config.Name, text)
		if code, _, log := run(t, "config"); code != exit.Usage || !strings.HasPrefix(log, "error: "+config.Name) {
			t.Errorf("%s: exit code %d\n%s", name, code, log)
		}
	}
	if err := os.Remove(config.Name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(config.Name, 0o700); err != nil {
		t.Fatal(err)
	}
	if code, _, log := run(t, "config"); code != exit.Usage {
		t.Errorf("a directory: exit code %d\n%s", code, log)
	}
	if code, _, log := run(t, "version"); code != exit.OK {
		t.Errorf("version reads it: exit code %d\n%s", code, log)
	}
}

// TestConfigurationsInTheDocs validates the examples that people copy with the program and with the schema.
func TestConfigurationsInTheDocs(t *testing.T) {
	compiled := configSchema(t)
	var examples []string
	for _, page := range []string{filepath.Join("..", "docs", "configuration.md")} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "```yaml\n")
		for _, block := range blocks[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			if strings.Contains(block, "filename:") {
				examples = append(examples, block)
			}
		}
	}
	if len(examples) < 1 {
		t.Fatalf("%d examples", len(examples))
	}
	t.Chdir(t.TempDir())
	for _, example := range examples {
		if err := compiled.Validate(yamlValue(t, example)); err != nil {
			t.Errorf("%v in\n%s", err, example)
		}
		write(t, config.Name, example)
		if code, _, log := run(t, "config"); code != exit.OK {
			t.Errorf("exit code %d in\n%s\n%s", code, example, log)
		}
	}
}
