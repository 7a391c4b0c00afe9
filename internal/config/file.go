package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
)

const (
	// misnamed is a common mistake for Name.
	misnamed = ".helmsrc.yml"
	// Name is the name of the file that is searched from the working directory upwards.
	Name = ".helmsrc.yaml"
	// maxBytes is the limit of the file's size, far above the size with all flags.
	maxBytes = 1 << 20
	// commandsKey is the key of the section with the settings of single commands.
	commandsKey = "commands"
)

// configuration is a configuration file: values for flags, each with its line.
type configuration struct {
	ignored bool   // found, but not read because of --untrusted
	path    string // for messages
	dir     string // the directory that its relative paths start from
	found   bool   // the user has not named it: it may be a stranger's
	// settings by command, "" for settings of all commands, and by flag.
	settings map[string]map[string]setting
}

// setting is a value for a flag. Lists have several values.
type setting struct {
	values []string
	line   int
}

// read reads the file that the flags name, or that it finds. It returns nil
// without a file.
func (c *Config) read(command *cobra.Command, origins Origins) (*configuration, error) {
	named, _ := command.Flags().GetString("config")
	none, _ := command.Flags().GetBool("no-config")
	if none && named != "" {
		byFlag := origins["config"] == "--config"
		if byFlag == (origins["no-config"] == "--no-config") {
			return nil, exit.Usagef("--config and --no-config are mutually exclusive")
		}
		none = !byFlag // the command line wins over the environment
	}
	switch {
	case none:
		return nil, nil
	case named != "":
		return parse(c.Root(), named, false)
	}
	path, err := find()
	if untrusted, _ := command.Flags().GetBool(UntrustedFlag); untrusted && (path != "" || err != nil) {
		return &configuration{ignored: true}, nil
	}
	if path == "" || err != nil {
		return nil, err
	}
	return parse(c.Root(), path, true)
}

// find searches for the file in the working directory and its parents, up
// to the root of the repository.
func find() (string, error) {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // so that .. is the directory above
	}
	var work fs.FileInfo
	if err == nil {
		work, err = os.Stat(dir)
	}
	if err != nil { // without a working directory, there is no file
		return "", nil
	}
	for up := ""; ; up = filepath.Join(up, "..") {
		info, err := os.Lstat(filepath.Join(dir, Name))
		path := filepath.Join(up, Name)
		switch {
		case err == nil:
			return path, checkFound(path, info, work)
		case up != "" && errors.Is(err, fs.ErrPermission): // this directory is readable, but its parent is not
			return "", nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", &exit.UsageError{Err: fmt.Errorf("configuration file: %w", err)}
		}
		if _, err := os.Lstat(filepath.Join(dir, misnamed)); err == nil {
			return "", &exit.UsageError{
				Err:    fmt.Errorf("%s is not read", filepath.Join(up, misnamed)),
				Advice: "call it " + Name + ", or ignore it with --no-config",
			}
		}
		parent := filepath.Dir(dir)
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || parent == dir {
			return "", nil
		}
		dir = parent
	}
}

// checkFound refuses files that other users may have planted: a link, which could
// make error messages quote a private file, and the file of another user in a directory
// that every user can write to, such as the directory for temporary files.
func checkFound(path string, file, work fs.FileInfo) error {
	const hint = "name it with --config if you trust it, or ignore it with --no-config"
	switch {
	case !file.Mode().IsRegular():
		return &exit.UsageError{Err: fmt.Errorf("%s is not a regular file", path), Advice: hint}
	case !ours(ownerOf(file), ownerOf(work), os.Geteuid()):
		return &exit.UsageError{Err: fmt.Errorf("%s belongs to another user", path), Advice: hint}
	}
	return nil
}

// ours reports whether a file belongs to a trusted user: the user of this process, the owner of
// the working directory, or root. A negative owner is unknown.
func ours(file, work, self int) bool {
	return file < 0 || file == 0 || file == work || file == self
}

func parse(root *cobra.Command, path string, found bool) (*configuration, error) {
	content, err := file.Read(root.Context(), path, maxBytes)
	if err != nil {
		return nil, &exit.UsageError{Err: fmt.Errorf("%s: %w", filepath.ToSlash(path), err)}
	}
	p := &configParser{
		root: root,
		file: &configuration{path: filepath.ToSlash(path), dir: filepath.Dir(path), found: found, settings: map[string]map[string]setting{}},
	}
	if err := p.parse(content); err != nil {
		return nil, err
	}
	return p.file, nil
}

// setting returns the value of a flag: that of the command, or else that of all commands.
func (c *configuration) setting(command, flag string) (setting, bool) {
	if s, ok := c.settings[command][flag]; ok {
		return s, true
	}
	s, ok := c.settings[""][flag]
	return s, ok
}

// forget removes the values of a flag.
func (c *configuration) forget(flag string) {
	for _, settings := range c.settings {
		delete(settings, flag)
	}
}

// apply sets every flag of a command that is not set yet to its value in the file.
func (c *configuration) apply(command string, flags *pflag.FlagSet, origins Origins) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		s, ok := c.setting(command, f.Name)
		if f.Changed || !ok || failed != nil {
			return
		}
		for _, value := range s.values {
			if err := flags.Set(f.Name, c.effective(f, value)); err != nil {
				failed = c.refuse(s.line, fmt.Errorf("%s: %w", f.Name, err), "")
				return
			}
		}
		origins[f.Name] = c.position(s.line)
	})
	return failed
}

func (c *configuration) position(line int) string { return fmt.Sprintf("%s:%d", c.path, line) }

// refuse returns an error about a line of the file.
func (c *configuration) refuse(line int, err error, hint string) error {
	return &exit.UsageError{Err: fmt.Errorf("%s: %w", c.position(line), err), Advice: hint}
}

// configParser parses a file into settings.
type configParser struct {
	root *cobra.Command
	file *configuration
}

func (p *configParser) parse(content []byte) error {
	node, err := onlyDocument(content)
	if err != nil {
		return &exit.UsageError{Err: fmt.Errorf("%s: %w", p.file.path, err)}
	}
	if node == nil {
		return nil
	}
	return p.mapping(node, func(key, value *yaml.Node) error {
		if key.Value == commandsKey {
			return p.sections(value)
		}
		return p.setting("", key, value)
	})
}
