package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/records"
	"github.com/helmsrc/helmsrc/internal/report"
)

// effectiveValue is the value of a flag of a command, with its origin.
type effectiveValue struct {
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

// effectiveValues returns the values of all commands by command and by flag. Values
// that are equal in all commands are under "".
func (c *Config) effectiveValues(asked *cobra.Command) (map[string]map[string]effectiveValue, error) {
	all := map[string]map[string]effectiveValue{"": {}}
	several := map[string]bool{}
	for _, command := range commands(c.Root()) {
		// A flag that was typed for this command applies to all commands.
		inherited := command.InheritedFlags()
		from, err := c.Configure(command, false)
		if err != nil {
			return nil, err
		}
		own := map[string]effectiveValue{}
		for name, f := range flagsOf(command.Root(), command.Name()) {
			if leftOpen(f) {
				continue
			}
			v := effectiveValue{typedValue(f), "default"}
			if origin := from[name]; origin != "" {
				v.Origin = origin
			} else if g := inherited.Lookup(name); g != nil && asked.Flags().Changed(name) {
				v.Origin = "--" + name
			}
			own[name] = v
			if other, known := all[""][name]; known && fmt.Sprint(other) != fmt.Sprint(v) {
				several[name] = true
			}
			all[""][name] = v
		}
		all[command.Name()] = own
	}
	for command, values := range all {
		maps.DeleteFunc(values, func(name string, _ effectiveValue) bool { return several[name] == (command == "") })
	}
	return all, nil
}

// leftOpen reports whether a boolean is neither true nor false. A file expresses that by leaving it out.
func leftOpen(f *pflag.Flag) bool { return f.Value.Type() == "bool" && f.Value.String() == "" }

// typedValue returns the value of a flag with its type in the configuration file.
func typedValue(f *pflag.Flag) any {
	text := auth.RedactText(f.Value.String())
	switch f.Value.Type() {
	case ambientType:
		if text != string(AmbientAnywhere) {
			return text == string(AmbientHome)
		}
	case "bool":
		return text == "true"
	case "int", "count":
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		word, _ := pflag.UnquoteUsage(f)
		values := []string{}
		for _, v := range list.GetSlice() {
			if key, _, found := strings.Cut(v, "="); found && word == "KEY=VALUE" {
				v = key + "=REDACTED" // some variables of manifests are secret
			}
			values = append(values, auth.RedactText(v))
		}
		return values
	}
	return text
}

// configured is a flag with its value, of a command, or of all commands that have it if Command is "".
type configured struct {
	Command string `json:"command,omitempty"`
	Flag    string `json:"flag"`
	effectiveValue
}

// settingsOf returns values by command and flag.
func settingsOf(values map[string]map[string]effectiveValue) []configured {
	var list []configured
	for _, command := range slices.Sorted(maps.Keys(values)) {
		for _, flag := range slices.Sorted(maps.Keys(values[command])) {
			list = append(list, configured{command, flag, values[command][flag]})
		}
	}
	return list
}

// ByCommand is the format that --json printed in versions without -o json.
const ByCommand = "by command"

// Write prints the values of the flags of all commands as yaml, as json, or ByCommand.
func (c *Config) Write(w io.Writer, asked *cobra.Command, format string) error {
	values, err := c.effectiveValues(asked)
	if err != nil {
		return err
	}
	switch format {
	case "json":
		return records.Encode(w, settingsOf(values), false)
	case ByCommand:
		commands := maps.Clone(values)
		delete(commands, "")
		return report.Encode(w, struct {
			File     string                               `json:"file,omitempty"`
			Values   map[string]effectiveValue            `json:"values"`
			Commands map[string]map[string]effectiveValue `json:"commands"`
		}{c.File, values[""], commands})
	}
	document, err := configurationNode(values)
	if err != nil {
		return err
	}
	head := "# no configuration file\n"
	if c.File != "" {
		head = "# " + strings.Join(strings.Fields(c.File), " ") + "\n"
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	return encoder.Close()
}

// configurationNode returns the document of a configuration file with the same values.
func configurationNode(values map[string]map[string]effectiveValue) (*yaml.Node, error) {
	document, err := settingsNode(values[""])
	if err != nil {
		return nil, err
	}
	sections := &yaml.Node{Kind: yaml.MappingNode}
	for _, command := range slices.Sorted(maps.Keys(values)) {
		if command == "" || len(values[command]) == 0 {
			continue
		}
		section, err := settingsNode(values[command])
		if err != nil {
			return nil, err
		}
		sections.Content = append(sections.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: command}, section)
	}
	document.Content = append(document.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: commandsKey}, sections)
	return document, nil
}

func settingsNode(values map[string]effectiveValue) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		v := &yaml.Node{}
		if err := v.Encode(values[name].Value); err != nil {
			return nil, err
		}
		if v.Kind == yaml.SequenceNode {
			v.Style = yaml.FlowStyle // a list in one line leaves room for the comment
		}
		v.LineComment = values[name].Origin
		node.Content = append(node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, v)
	}
	return node, nil
}
