package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
)

// TestReference compares docs/reference and man with the commands: go test ./cmd -run TestReference -update writes them. They
// are generated here, because the program does not need them.
func TestReference(t *testing.T) {
	root := newRootCommand(&app{env: &Env{Program: "helmsrc"}, console: console.New(nil)})
	pages, manuals := map[string]string{"README.md": referenceIndex(root)}, map[string]string{}
	for _, c := range documented(root) {
		pages[pageName(c)+".md"] = reference(c)
		manuals[pageName(c)+".1"] = manual(c)
	}
	holdDirectory(t, filepath.Join("..", "docs", "reference"), pages)
	holdDirectory(t, filepath.Join("..", "man"), manuals)
}

// TestHelpGroups reports names in the groups of flags that no command has, and flags of fetch without a group.
func TestHelpGroups(t *testing.T) {
	root := newRootCommand(&app{env: &Env{Program: "helmsrc"}, console: console.New(nil)})
	known := map[string]bool{}
	for _, c := range documented(root) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			known[f.Name] = true
			if c.Name() == "fetch" && f.Name != "help" && groupOf(f.Name) == 0 {
				t.Errorf("--%s of fetch is in no group", f.Name)
			}
		})
	}
	for _, g := range flagGroups() {
		for _, name := range g.names {
			if !known[name] {
				t.Errorf("%s: no command has a flag --%s", g.title, name)
			}
		}
	}
}

// TestHelpIsComplete checks that every command has a summary and an example, and every flag a usage.
func TestHelpIsComplete(t *testing.T) {
	root := newRootCommand(&app{env: &Env{Program: "helmsrc"}, console: console.New(nil)})
	for _, c := range documented(root) {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s has no summary or no example", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s has no usage", c.CommandPath(), f.Name)
			}
		})
	}
}

// holdDirectory compares the files of a directory with the generated ones.
func holdDirectory(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if *updateFiles {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			write(t, filepath.Join(dir, name), text)
			if err := os.Chmod(filepath.Join(dir, name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	const cure = "go test ./cmd -run TestReference -update"
	if len(entries) != len(want) {
		t.Errorf("%s has %d files, want %d: %s", dir, len(entries), len(want), cure)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != text {
			t.Errorf("%s is not what the commands say: %s", filepath.Join(dir, name), cure)
		}
	}
}

// documented returns a command and its visible subcommands.
func documented(c *cobra.Command) []*cobra.Command {
	c.InitDefaultHelpCmd()
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func referenceIndex(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The commands\n\nGenerated from the program; `helmsrc COMMAND --help` prints the same, and `man/` has it as manual pages.\n\n| command | does |\n|---|---|\n")
	for _, c := range documented(root) {
		fmt.Fprintf(&b, "| [`%s`](%s.md) | %s |\n", c.CommandPath(), pageName(c), c.Short)
	}
	b.WriteString("\nA flag beats its variable in the environment, which beats the\n[configuration file](../configuration.md), which beats the default.\n")
	return b.String()
}

// reference returns the page of a command.
func reference(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n```\n%s\n```\n\n", c.CommandPath(), c.Short, c.UseLine())
	if c.Long != "" {
		b.WriteString(c.Long + "\n\n")
	}
	fmt.Fprintf(&b, "## Examples\n\n```sh\n%s\n```\n", dedented(c.Example))
	if commands := below(c); len(commands) > 0 {
		b.WriteString("\n## Commands\n\n| command | does |\n|---|---|\n")
		for _, sub := range commands {
			fmt.Fprintf(&b, "| [`%s`](%s.md) | %s |\n", sub.CommandPath(), pageName(sub), sub.Short)
		}
	}
	titles, sets := grouped(c.LocalNonPersistentFlags())
	for i, set := range sets {
		flagTable(&b, titles[i], c, set)
	}
	if c.HasParent() {
		fmt.Fprintf(&b, "\nAnd the [flags of all commands](%s.md#flags-of-all-commands).\n", pageName(c.Root()))
	}
	flagTable(&b, "Flags of all commands", c, c.PersistentFlags())
	return b.String()
}

func below(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool { return sub.Hidden || sub.Name() == "help" })
}

func dedented(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

func flagTable(b *strings.Builder, title string, c *cobra.Command, flags *pflag.FlagSet) {
	rows := ""
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		name, usage := flagTerm(f)
		rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, inCode(config.Variable(f.Name)), inCode(shownDefault(f)), strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(usage))
	})
	if rows != "" {
		fmt.Fprintf(b, "\n## %s\n\n| flag | environment | default | meaning |\n|---|---|---|---|\n%s", title, rows)
	}
}

func inCode(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// flagTerm returns a flag as it is typed, with the name of its value, and its usage.
func flagTerm(f *pflag.Flag) (name, usage string) {
	word, usage := pflag.UnquoteUsage(f)
	name = "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if word != "" && f.Value.Type() != "count" {
		name += " " + word
	}
	return name, usage
}

// shownDefault returns the default of a flag, if it has one.
func shownDefault(f *pflag.Flag) string {
	if f.DefValue == "[]" {
		return ""
	}
	return f.DefValue
}

// manual returns the manual page of a command, in the macros of man(7). It has no date: the version of the program is more
// useful.
func manual(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" helmsrc \"helmsrc manual\"\n", roff(strings.ToUpper(pageName(c))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(c)), roff(strings.ToLower(c.Short[:1])+c.Short[1:]))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for i, paragraph := range strings.Split(long, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(paragraph) + "\n")
	}
	for _, sub := range below(c) {
		if sub == below(c)[0] {
			b.WriteString(".SH COMMANDS\n")
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
	}
	heading := ".SH OPTIONS\n"
	titles, sets := grouped(c.LocalNonPersistentFlags())
	for i, set := range sets {
		before := b.Len()
		manualFlags(&b, heading+".SS "+titles[i]+"\n", set)
		if b.Len() > before {
			heading = ""
		}
	}
	manualFlags(&b, ".SH OPTIONS OF ALL COMMANDS\n", c.PersistentFlags())
	fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(dedented(c.Example)))
	b.WriteString(".SH ENVIRONMENT\nEvery option has a variable of the name given above. An option beats its variable, which beats the configuration file\n(.helmsrc.yaml), which beats the default.\n")
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(pageName(c.Parent())))
	} else {
		b.WriteString(exitStatus)
	}
	return b.String()
}

const exitStatus = `.SH EXIT STATUS
.TP
.B 0
every selected object is ready, or suspended, or has no status by design
.TP
.B 1
an object is not ready, or was rejected
.TP
.B 2
wrong usage, nothing selected, or input that cannot be read
.TP
.B 3
a digest or signature check failed
.TP
.B 5
only transient failures: a retry may help
.TP
.B 130
interrupted
`

func manualFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	begun := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if !begun {
			b.WriteString(title)
			begun = true
		}
		name, usage := flagTerm(f)
		if d := shownDefault(f); d != "" && d != "false" && d != "0" {
			usage += "; default " + d
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s (%s)\n", roff(name), roff(usage), config.Variable(f.Name))
	})
}

// roff escapes text: hyphens stay hyphens, so that they can be copied, and no line begins a macro.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// TestOneCommand: a command line that begins with a command has only this one at first.
func TestOneCommand(t *testing.T) {
	for name := range commandsByName() {
		a := &app{env: &Env{Program: "helmsrc", Args: []string{name}}, console: console.New(nil)}
		root := newRootCommand(a)
		if own := root.Commands(); len(own) != 1 || own[0].Name() != name {
			t.Errorf("%s: the root has %d commands", name, len(own))
		}
		if all, want := a.config.Root().Commands(), len(commandsByName())+len(hiddenCommands(a)); len(all) != want {
			t.Errorf("%s: all are %d commands, want %d", name, len(all), want)
		}
	}
}
