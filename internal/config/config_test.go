package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestOwnerOfConfiguration lists the owners whose files are accepted when they are found.
func TestOwnerOfConfiguration(t *testing.T) {
	const self, other, third = 1000, 1001, 1002
	for _, test := range []struct {
		file, work int
		want       bool
	}{
		{self, self, true}, {0, self, true}, {self, other, true},
		{other, other, true}, // another user's checkout, as in a container
		{other, self, false}, {other, 0, false}, {other, third, false},
		{-1, -1, true},
	} {
		if got := ours(test.file, test.work, self); got != test.want {
			t.Errorf("the file of %d in the directory of %d: %v", test.file, test.work, got)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := ownerOf(info); owner != os.Geteuid() && owner != -1 {
		t.Errorf("our own file belongs to %d", owner)
	}
}

// TestReservedKeysAreDocumented expects the reserved keys on the page about the configuration file.
func TestReservedKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for why, names := range reservedKeys() {
		for _, name := range names {
			if why != "" && !bytes.Contains(page, []byte("`"+name+"`")) {
				t.Errorf("%s is reserved, and docs/configuration.md does not say so", name)
			}
		}
	}
}

// testCommand is a program with two commands, whose flags are of every type.
func testCommand() *cobra.Command {
	root := &cobra.Command{Use: "helmsrc"}
	AddFlags(root.PersistentFlags())
	for _, name := range []string{"fetch", "validate"} {
		c := &cobra.Command{Use: name}
		c.Flags().StringArray("filename", nil, "`file`")
		c.Flags().StringArray("source", nil, "a `KIND/NAME=PATH`")
		c.Flags().String("artifacts-dir", "artifacts", "`directory`")
		c.Flags().Duration("timeout", 0, "")
		c.Flags().Bool("recursive", false, "")
		c.Flags().Bool("exit-zero", false, "")
		c.Flags().CountP("verbose", "v", "")
		c.Flags().Var(new(Ambient), "ambient-credentials", "")
		c.Flags().Var(new(Bytes), "helm-index-max-size", "")
		root.AddCommand(c)
	}
	return root
}

// FuzzConfiguration reads arbitrary files: an error names the file, and nothing reserved is set.
func FuzzConfiguration(f *testing.F) {
	for _, seed := range []string{
		"", "timeout: 5m", "commands: {fetch: {recursive: true}}", "filename: [a, b]", "source: [HelmRepository/a=b]", "a: &a [*a]", "? {}", "- a",
		"artifacts-dir: ../x", "verbose: 0x10", "!!binary x: y", "---\n---\n", "timeout: !!str 5", "\xff", "exit-zero: true", "ambient-credentials: anywhere",
	} {
		f.Add([]byte(seed))
	}
	root := testCommand()
	f.Fuzz(func(t *testing.T, content []byte) {
		p := &configParser{root: root, file: &configuration{path: "c.yaml", dir: ".", found: true, settings: map[string]map[string]setting{}}}
		if err := p.parse(content); err != nil {
			if !strings.HasPrefix(err.Error(), "c.yaml") {
				t.Errorf("%q does not name the file", err)
			}
			return
		}
		for command, settings := range p.file.settings {
			for flag, s := range settings {
				if flagsOf(root, command)[flag] == nil || reserved(flag) != "" || s.line < 1 {
					t.Errorf("%s %s: %+v", command, flag, s)
				}
			}
		}
	})
}

// TestOrder sets a flag in several ways, and expects the value that wins.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(Name, []byte("timeout: 3m\nrecursive: true\ncommands: {fetch: {timeout: 2m}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args        []string
		environment string
		value, from string
	}{
		{[]string{"fetch", "--timeout=1s"}, "1m", "1s", "--timeout"},
		{[]string{"fetch"}, "1m", "1m0s", "HELMSRC_TIMEOUT"},
		{[]string{"fetch"}, "", "2m0s", Name + ":3"},
		{[]string{"validate"}, "", "3m0s", Name + ":1"},
		{[]string{"fetch", "--no-config"}, "", "0s", ""},
	} {
		root := testCommand()
		root.SetArgs(test.args)
		c := Config{Root: func() *cobra.Command { return root }, Getenv: func(name string) string { return map[string]string{"HELMSRC_TIMEOUT": test.environment}[name] }}
		for _, sub := range root.Commands() {
			sub.RunE = func(cmd *cobra.Command, _ []string) error {
				from, err := c.Configure(cmd, false)
				if got := cmd.Flags().Lookup("timeout").Value.String(); got != test.value || from["timeout"] != test.from {
					t.Errorf("%v, %q: %s from %q", test.args, test.environment, got, from["timeout"])
				}
				return err
			}
		}
		if err := root.Execute(); err != nil {
			t.Errorf("%v: %v", test.args, err)
		}
	}
}
