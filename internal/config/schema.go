package config

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/report"
)

// schemaID is the URL at which the schema is published.
const schemaID = "https://raw.githubusercontent.com/helmsrc/helmsrc/main/schema/helmsrc.schema.json"

// schema is the part of JSON Schema that flags need.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	ID          string             `json:"$id,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Default     any                `json:"default,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Additional  *bool              `json:"additionalProperties,omitempty"`
}

// schemaOf returns the schema of configuration files, made from the flags of the commands.
func schemaOf(root *cobra.Command) *schema {
	sections := objectSchema()
	sections.Description = "settings of single commands, which take precedence"
	for _, c := range commands(root) {
		own := flagsSchema(flagsOf(root, c.Name()))
		own.Description = c.Short
		sections.Properties[c.Name()] = own
	}
	s := flagsSchema(flagsOf(root, ""))
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.ID = schemaID
	s.Title = "Configuration of helmsrc"
	s.Description = "values for the flags of helmsrc, for every command that has them; the file may be empty"
	s.Type = []string{"object", "null"}
	s.Properties[commandsKey] = sections
	return s
}

// WriteSchema writes the JSON Schema of configuration files, made from the flags of the commands.
func WriteSchema(w io.Writer, root *cobra.Command) error { return report.Encode(w, schemaOf(root)) }

func objectSchema() *schema {
	return &schema{Type: "object", Properties: map[string]*schema{}, Additional: new(bool)}
}

func flagsSchema(flags map[string]*pflag.Flag) *schema {
	s := objectSchema()
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		s.Properties[name] = flagSchema(flags[name])
	}
	return s
}

// patternOf returns an expression that matches the choices, values that begin with an open-ended choice, and the empty value.
func patternOf(choices []string) string {
	var alternatives []string
	for _, choice := range choices {
		if OpenEnded(choice) {
			choice += `[\s\S]+`
		}
		alternatives = append(alternatives, choice)
	}
	return "^(" + strings.Join(alternatives, "|") + ")?$"
}

// flagSchema returns the schema for the value of a flag.
func flagSchema(f *pflag.Flag) *schema {
	s := &schema{}
	_, s.Description = pflag.UnquoteUsage(f)
	if reserved(f.Name) != "" {
		s.Description += "; only in a file that is named with --config"
	}
	if choices := Choices(f); choices != nil {
		s.Enum = choices
		if slices.ContainsFunc(choices, OpenEnded) {
			s.Enum, s.Pattern = nil, patternOf(choices)
		} else if f.DefValue == "" { // the default depends on the run
			s.Enum = append(slices.Clone(choices), "")
		}
	}
	switch f.Value.Type() {
	case "bool":
		s.Type = "boolean"
		if f.DefValue != "" {
			s.Default = f.DefValue == "true"
		}
	case ambientType:
		s.Type, s.Default, s.Enum = []string{"boolean", "string"}, true, nil
		s.Pattern = "^" + string(AmbientAnywhere) + "$"
	case "int", "count":
		s.Type, s.Minimum = "integer", new(int)
		if n, err := strconv.Atoi(f.DefValue); err == nil {
			s.Default = n
		}
	case "bytes":
		s.Type, s.Default = []string{"integer", "string"}, f.DefValue
	case "duration":
		s.Type, s.Default = "string", f.DefValue
		s.Pattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
	default:
		s.Type = "string"
		if f.DefValue != "" {
			s.Default = f.DefValue
		}
	}
	if !isList(f) {
		return s
	}
	description := s.Description
	s.Description, s.Default = "", nil
	list := &schema{Description: strings.TrimSuffix(description, " (repeatable)"), Type: []string{"array", "string"}, Items: s}
	list.Pattern, list.Enum = s.Pattern, nil
	return list
}
