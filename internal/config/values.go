package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// onlyDocument returns the root of a file with one YAML document, nil if it is empty.
func onlyDocument(content []byte) (*yaml.Node, error) {
	if err := bound.Check(content); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document, second yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	root := document.Content[0]
	if root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

// mapping visits the entries of a map, and refuses all other nodes.
func (p *configParser) mapping(node *yaml.Node, visit func(key, value *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return p.file.refuse(node.Line, errors.New("a map of flags and their values was expected"), "")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" {
			return p.file.refuse(key.Line, errors.New("a key must be the name of a flag"), "")
		}
		if seen[key.Value] {
			return p.file.refuse(key.Line, fmt.Errorf("duplicate key %q", key.Value), "")
		}
		seen[key.Value] = true
		if err := visit(key, value); err != nil {
			return err
		}
	}
	return nil
}

// sections parses the section with the settings of single commands.
func (p *configParser) sections(node *yaml.Node) error {
	return p.mapping(node, func(key, value *yaml.Node) error {
		known := commands(p.root)
		if !slices.ContainsFunc(known, func(c *cobra.Command) bool { return c.Name() == key.Value }) {
			return p.unknown(key, "command", commandNames(known))
		}
		return p.mapping(value, func(flag, value *yaml.Node) error { return p.setting(key.Value, flag, value) })
	})
}

// setting parses the value of a flag, of one command or of all commands that have it.
func (p *configParser) setting(command string, key, value *yaml.Node) error {
	flags := flagsOf(p.root, command)
	f := flags[key.Value]
	if f == nil {
		names := make([]string, 0, len(flags))
		for name := range flags {
			names = append(names, name)
		}
		if command == "" {
			names = append(names, commandsKey)
		}
		return p.unknown(key, "key", names)
	}
	if why := reserved(key.Value); p.file.found && why != "" {
		return p.file.refuse(key.Line, fmt.Errorf("%s %s: not allowed in a file that --config does not name", key.Value, why),
			"set it by flag or environment, or name the file with --config if you trust it")
	}
	values, err := valuesOf(f, value)
	if err != nil {
		return p.file.refuse(value.Line, fmt.Errorf("%s: %w", key.Value, err), "")
	}
	for _, v := range values {
		if err := p.file.confined(f, v); err != nil {
			return p.file.refuse(value.Line, fmt.Errorf("%s: %w", key.Value, err), "name the file with --config if you trust it")
		}
	}
	if p.file.settings[command] == nil {
		p.file.settings[command] = map[string]setting{}
	}
	p.file.settings[command][key.Value] = setting{values, key.Line}
	return nil
}

func (p *configParser) unknown(key *yaml.Node, what string, names []string) error {
	hint := "'helmsrc config' prints all keys"
	slices.Sort(names)
	if near, ok := finding.Nearest(key.Value, names); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return p.file.refuse(key.Line, fmt.Errorf("unknown %s %q", what, key.Value), hint)
}

// commands returns the commands that use a configuration file, in the order of
// their names.
func commands(root *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool {
		return c.Flags().Lookup("filename") == nil
	})
}

func commandNames(commands []*cobra.Command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	return names
}

// flagsOf returns the flags of a command by name, or those of all commands
// together. Flags of one name have the same type: a test checks that.
func flagsOf(root *cobra.Command, command string) map[string]*pflag.Flag {
	flags := map[string]*pflag.Flag{}
	for _, c := range commands(root) {
		if command != "" && c.Name() != command {
			continue
		}
		for _, set := range []*pflag.FlagSet{c.LocalNonPersistentFlags(), root.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if _, known := flags[f.Name]; !known && !slices.Contains([]string{"help", "config", "no-config"}, f.Name) {
					flags[f.Name] = f
				}
			})
		}
	}
	return flags
}

// valuesOf returns the values of a node in the form that the flag parses.
func valuesOf(f *pflag.Flag, node *yaml.Node) ([]string, error) {
	items := []*yaml.Node{node}
	if isList(f) && node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	values := []string{}
	for _, item := range items {
		text, err := scalar(f, item)
		if err != nil {
			return nil, err
		}
		values = append(values, text)
	}
	return values, nil
}

func isList(f *pflag.Flag) bool {
	_, list := f.Value.(pflag.SliceValue)
	return list
}

// scalar returns a single value. It does not convert YAML types: a number or a
// boolean has to be quoted if the flag takes a string.
func scalar(f *pflag.Flag, node *yaml.Node) (string, error) {
	want, tags := "a string (quote it)", []string{"!!str"}
	switch f.Value.Type() {
	case "bool":
		want, tags = "true or false", []string{"!!bool"}
	case ambientType:
		want, tags = "true, false or anywhere", []string{"!!bool", "!!str"}
	case "int", "count":
		want, tags = "a whole number", []string{"!!int"}
	case "bytes":
		want, tags = "a number of bytes or a quantity such as 50Mi", []string{"!!int", "!!str"}
	}
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		return "", errors.New("anchors and aliases are not supported")
	case node.Kind != yaml.ScalarNode || !slices.Contains(tags, node.Tag):
		return "", fmt.Errorf("must be %s", want)
	}
	return node.Value, nil
}

// splitPath splits a flag's value into the text before the path and the path. A flag
// takes a path if the word for its value in its usage is file or directory, or ends
// in =PATH or =FILE.
func splitPath(f *pflag.Flag, value string) (before, path string, ok bool) {
	word, _ := pflag.UnquoteUsage(f)
	switch {
	case word == "file" || word == "directory":
		return "", value, value != "" && value != "-"
	case strings.HasSuffix(word, "=PATH") || strings.HasSuffix(word, "=FILE"):
		before, path, found := strings.Cut(value, "=")
		return before + "=", path, found && path != "" && path != "-"
	}
	return "", "", false
}

// effective returns a value for the flag: relative paths start from the directory of the file.
func (c *configuration) effective(f *pflag.Flag, value string) string {
	before, path, ok := splitPath(f, value)
	if !ok || filepath.IsAbs(path) {
		return value
	}
	return before + filepath.ToSlash(joinKeeping(c.dir, filepath.FromSlash(path)))
}

// joinKeeping joins paths, and keeps a separator at the end.
func joinKeeping(dir, path string) string {
	joined := filepath.Join(dir, path)
	if strings.HasSuffix(path, string(filepath.Separator)) && !strings.HasSuffix(joined, string(filepath.Separator)) {
		joined += string(filepath.Separator)
	}
	return joined
}

// confined refuses paths that lead out of the directory of a file that was found: the
// file comes with a repository, and must not name files outside of it.
func (c *configuration) confined(f *pflag.Flag, value string) error {
	_, path, ok := splitPath(f, value)
	if !c.found || !ok {
		return nil
	}
	outside := fmt.Errorf("%s is not below the directory of the configuration file", path)
	local := filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsLocal(local) {
		return outside
	}
	if slices.ContainsFunc(strings.Split(local, string(filepath.Separator)), isGit) {
		return fmt.Errorf("%s is Git's own", path)
	}
	root, err := filepath.EvalSymlinks(c.dir)
	if err != nil {
		return err
	}
	// A path that does not exist yet is no link that leads away, but its parents may be.
	for ; local != "."; local = filepath.Dir(local) {
		if _, err := os.Lstat(filepath.Join(c.dir, local)); err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(c.dir, local))
		if err != nil {
			return outside // a dangling link: its target may be created later
		}
		if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
			return outside
		}
		return nil
	}
	return nil
}

func isGit(element string) bool { return strings.EqualFold(element, ".git") }

// reserved returns the reason why a file that was found, not named, must not set a key: a person who
// can write to a repository should not decide about the logins of the users who check it, nor about
// what they trust, nor whether a failure is reported. Keys that are not known to be harmless are
// reserved. It returns "" for other keys.
func reserved(key string) string {
	for why, keys := range reservedKeys() {
		if slices.Contains(keys, key) {
			return why
		}
	}
	return "may not be safe"
}

// reservedKeys returns keys by the reason why they are reserved, "" for keys that are not.
func reservedKeys() map[string][]string {
	return map[string][]string{
		"decides which logins are used": {"registry-config", "repository-config", "ambient-credentials", "missing-secrets", "allow-private-redirects", InsecureFlag, UntrustedFlag},
		"decides what is trusted":       {"trusted-root", "keyring", "index-digest", "allow-name-mismatch", "cache-dir"},
		"hides failures":                {"exit-zero", "allow-empty", "changed-since", "substitute-strict"},
		"": {
			"filename", "lookup-dir", "recursive", "namespace", "default-namespace", "source", "source-dir", "follow-sources", "output", "events",
			"artifacts-dir", "storage-adv-addr", "artifact-digest-algo", "artifact-retention-ttl", "artifact-retention-records",
			"concurrency", "timeout", "retries", "refresh", "flat", "no-cache", "cache-max-size", "offline",
			"helm-index-max-size", "helm-chart-max-size", "helm-chart-file-max-size", "helm-chart-max-unpacked-size",
			"require-verification", "verify-dependencies", "strict", "no-cross-namespace-refs",
			"substitute", "flux-version", "dry-run", "against", "diff", "strip", "exit-code", "fail-on-change", "kube-version", "api-versions", "helm-timeout", "helm-max-memory", "report", "report-silenced", "no-github",
			"locked", "lock-file",
			"quiet", "verbose", "log-format", "no-progress", "color",
		},
	}
}
