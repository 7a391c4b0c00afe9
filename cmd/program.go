package cmd

import (
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// programName is how people call the program, made of the first word of its command line: an executable called
// flux-helmsrc is the plugin of the Flux CLI that is called "flux helmsrc", and kubectl has plugins, too.
func programName(arg0 string) string {
	name := filepath.Base(filepath.FromSlash(arg0))
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".exe") {
		name = strings.TrimSuffix(name, ext)
	}
	unprintable := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if name == "" || name == "." || name == string(filepath.Separator) || strings.ContainsFunc(name, unprintable) {
		return "helmsrc"
	}
	if host, plugin, ok := strings.Cut(name, "-"); ok && plugin != "" && (host == "flux" || host == "kubectl") {
		return host + " " + plugin
	}
	return name
}

// callAs makes the usage texts of all commands name the program as it was called.
func callAs(root *cobra.Command, program string) {
	if program == "helmsrc" {
		return
	}
	root.Use = strings.ReplaceAll(program, " ", "-")
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: program}
	var rename func(*cobra.Command)
	rename = func(c *cobra.Command) {
		c.Example = strings.ReplaceAll(c.Example, "  helmsrc ", "  "+program+" ")
		for _, sub := range c.Commands() {
			rename(sub)
		}
	}
	rename(root)
}
