package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The width of help without a terminal, and the limits of its width on a terminal.
const (
	helpColumns    = 80
	maxHelpColumns = 99
	minHelpColumns = 40
)

// The groups of commands, in the order of the help.
const (
	groupCharts    = "charts"
	groupManifests = "manifests"
	groupArtifacts = "artifacts"
)

func commandGroups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupCharts, Title: "Commands for charts:"},
		{ID: groupManifests, Title: "Commands for manifests:"},
		{ID: groupArtifacts, Title: "Commands for the artifacts directory:"},
	}
}

// flagGroup is a group of flags in the help, with the names of its flags.
type flagGroup struct {
	title string
	names []string
}

// flagGroups returns the groups in the order of the help. Flags without a group are printed before them.
func flagGroups() []flagGroup {
	return []flagGroup{
		{"Input flags", []string{"filename", "recursive", "lookup-dir", "source", "source-dir", "follow-sources", "default-namespace", "substitute",
			"substitute-strict", "flux-version", "no-cross-namespace-refs"}},
		{"Selection flags", []string{"cluster", "namespace", "shard", "changed-since", "allow-empty"}},
		{"Output flags", []string{"output", "events", "report", "report-silenced", "images", "no-github", "exit-zero"}},
		{"Artifact flags", []string{"artifacts-dir", "artifact-digest-algo", "artifact-retention-records", "artifact-retention-ttl",
			"flat", "refresh", "storage-adv-addr"}},
		{"Lock flags", []string{"locked", "lock-file"}},
		{"Credential flags", []string{"ambient-credentials", "allow-private-redirects", config.InsecureFlag, "missing-secrets",
			"registry-config", "repository-config", config.UntrustedFlag}},
		{"Limit flags", []string{"concurrency", "timeout", "retries", "helm-index-max-size", "helm-chart-max-size",
			"helm-chart-file-max-size", "helm-chart-max-unpacked-size"}},
		{"Rendering flags", []string{"helm", "helm-timeout", "helm-max-memory", "kube-version", "api-versions"}},
		{"Cache flags", []string{"cache-dir", "cache-max-size", "no-cache", "offline", "from"}},
		{"Verification flags", []string{"allow-name-mismatch", "index-digest", "keyring", "require-verification", "trusted-root",
			"verify-dependencies"}},
	}
}

// rareFlags returns the flags that few runs set. Help lists them with --all.
func rareFlags() []string {
	return []string{
		"default-namespace", "no-cross-namespace-refs", "source-dir", "substitute-strict", "flux-version", "shard", "exit-zero",
		"events", "report-silenced", "no-github", "artifact-digest-algo", "artifact-retention-records", "artifact-retention-ttl",
		"storage-adv-addr", "allow-private-redirects", config.InsecureFlag, "missing-secrets", "registry-config", "repository-config",
		"concurrency", "retries", "helm-index-max-size", "helm-chart-max-size", "helm-chart-file-max-size", "helm-chart-max-unpacked-size",
		"helm-timeout", "helm-max-memory", "cache-dir", "cache-max-size", "no-cache", "allow-name-mismatch", "index-digest",
		"verify-dependencies", "trusted-root", "log-format", "no-progress", "config", "no-config", "images", "flat", "follow-sources",
	}
}

// helpPages print help.
type helpPages struct {
	all      bool // flags, also rare ones
	terminal func() (width, height int, ok bool)
}

// takeAll removes --all from arguments that ask for help. In other command lines it is a flag of the command.
func (h *helpPages) takeAll(args []string) []string {
	help := len(args) > 0 && args[0] == "help" || slices.Contains(args, "--help") || slices.Contains(args, "-h")
	if !help || !slices.Contains(args, "--all") {
		return args
	}
	h.all = true
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--all" })
}

// common returns the flags of a set that help lists without --all, and the number of those that it omits.
func (h *helpPages) common(flags *pflag.FlagSet) (*pflag.FlagSet, int) {
	set, left := pflag.NewFlagSet("", pflag.ContinueOnError), 0
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case !h.all && slices.Contains(rareFlags(), f.Name):
			left++
		default:
			set.AddFlag(f)
		}
	})
	return set, left
}

// grouped divides the flags of a set into groups, without empty ones.
func grouped(flags *pflag.FlagSet) (titles []string, sets []*pflag.FlagSet) {
	groups := append([]flagGroup{{title: "Flags"}}, flagGroups()...)
	for i, g := range groups {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			if groupOf(f.Name) == i && !f.Hidden {
				set.AddFlag(f)
			}
		})
		if set.HasFlags() {
			titles, sets = append(titles, g.title), append(sets, set)
		}
	}
	return titles, sets
}

// groupOf returns the position of a flag's group, from 1, or 0 for flags without a group.
func groupOf(flag string) int {
	return 1 + slices.IndexFunc(flagGroups(), func(g flagGroup) bool { return slices.Contains(g.names, flag) })
}

// page prints the help of a command: its description, in lines that fit, and its usage.
func (h *helpPages) page(c *cobra.Command) {
	columns := h.columns()
	wide := func(line string) bool { return len(line) > columns }
	about := strings.Split(strings.TrimSpace(cmp.Or(c.Long, c.Short)), "\n\n")
	for i, text := range about {
		if slices.ContainsFunc(strings.Split(text, "\n"), wide) && !strings.Contains(text, "\n ") {
			about[i] = wrapped(text, columns)
		}
	}
	c.Printf("%s\n\n%s", strings.Join(about, "\n\n"), c.UsageString())
}

// usage prints the usage of a command, with its subcommands and flags in groups.
func (h *helpPages) usage(c *cobra.Command) error {
	columns := h.columns()
	var b strings.Builder
	b.WriteString("Usage:\n")
	if c.Runnable() {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(wrapped(c.UseLine(), columns-4), "\n", "\n    "))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	if c.HasAvailableSubCommands() {
		for _, g := range c.Groups() {
			writeCommands(&b, c, g.Title, g.ID)
		}
		title := "Other commands:"
		if len(c.Groups()) == 0 {
			title = "Commands:"
		}
		writeCommands(&b, c, title, "")
	}
	own, left := h.common(c.LocalNonPersistentFlags())
	titles, sets := grouped(own)
	for i, set := range sets {
		writeFlags(&b, titles[i], set, columns)
	}
	global := c.InheritedFlags()
	global.AddFlagSet(c.PersistentFlags())
	global, more := h.common(global)
	if global.HasAvailableFlags() {
		writeFlags(&b, "Flags of all commands", global, columns)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", c.CommandPath())
	}
	if left+more > 0 {
		fmt.Fprintf(&b, "\n'%s --help --all' lists %d more flags.\n", c.CommandPath(), left+more)
	}
	_, err := io.WriteString(c.OutOrStderr(), b.String())
	return err
}

func writeCommands(b *strings.Builder, c *cobra.Command, title, group string) {
	for _, sub := range c.Commands() {
		if sub.GroupID != group || !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		if title != "" {
			fmt.Fprintf(b, "\n%s\n", title)
			title = ""
		}
		fmt.Fprintf(b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
	}
}

func writeFlags(b *strings.Builder, title string, flags *pflag.FlagSet, columns int) {
	fmt.Fprintf(b, "\n%s:\n", title)
	for line := range strings.Lines(flags.FlagUsagesWrapped(columns)) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// columns returns the width of help: that of the terminal, within limits.
func (h *helpPages) columns() int {
	if h.terminal != nil {
		if width, _, ok := h.terminal(); ok {
			return min(maxHelpColumns, max(minHelpColumns, width-1))
		}
	}
	return helpColumns
}

// flagHint returns the name of a similar flag, else a reference to the help.
func flagHint(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if flag, _, two := strings.Cut(unknown.GetSpecifiedName(), " "); two && c.Flag(flag) != nil {
			return fmt.Sprintf("flag and value are one argument here: write --%s= before the value, or each on its own", flag)
		}
		if near, ok := nearestFlag(c, unknown.GetSpecifiedName()); ok {
			return fmt.Sprintf("did you mean --%s?", near)
		}
	}
	return fmt.Sprintf("see '%s --help'", c.CommandPath())
}

// nearestFlag returns a flag of a command whose name begins with this one, or one with a similar name.
func nearestFlag(c *cobra.Command, name string) (string, bool) {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	c.Flags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	const least = 4 // shorter words begin too many
	for _, known := range names {
		if len(name) >= least && strings.HasPrefix(known, name) {
			return known, true
		}
	}
	return finding.Nearest(name, names)
}

// wrapped breaks a text into lines.
func wrapped(text string, columns int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > columns:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
