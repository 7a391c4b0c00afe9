package index

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/Masterminds/semver/v3"
)

// metadata is what Helm's rules for the metadata of a chart look at. A nil item is a null in the list.
type metadata struct {
	name, version, typ string
	maintainers        []bool // whether the item is there
	dependencies       []*dependency
}

type dependency struct{ name, alias string }

var (
	errNoName      = errors.New("chart.metadata.name is required")
	errNoVersion   = errors.New("chart.metadata.version is required")
	errType        = errors.New("chart.metadata.type must be application or library")
	errMaintainers = errors.New("maintainers must not contain empty or null nodes")
	errDependency  = errors.New("dependencies must not contain empty or null nodes")
)

// validate applies the rules by which Helm keeps or drops an entry of an index. An entry without apiVersion counts as
// v1, so that is no rule here.
func (m *metadata) validate() error {
	switch {
	case m.name == "":
		return errNoName
	case m.name == "." || m.name == ".." || strings.Contains(m.name, "/"):
		return fmt.Errorf("chart.metadata.name %q is invalid", m.name)
	case m.version == "":
		return errNoVersion
	}
	if _, err := semver.NewVersion(m.version); err != nil {
		return fmt.Errorf("chart.metadata.version %q is invalid", m.version)
	}
	if m.typ != "" && m.typ != "application" && m.typ != "library" {
		return errType
	}
	if slices.Contains(m.maintainers, false) {
		return errMaintainers
	}
	return validateDependencies(m.dependencies)
}

// validateDependencies does not mind a name or alias that occurs twice: repositories of JFrog lose the alias. Helm stops
// looking there, so what comes after it is not judged.
func validateDependencies(list []*dependency) error {
	for i, d := range list {
		if err := d.validate(); err != nil {
			if repeated(list[:i]) {
				return nil
			}
			return err
		}
	}
	return nil
}

func (d *dependency) validate() error {
	if d == nil {
		return errDependency
	}
	if d.alias != "" && !aliasFormat().MatchString(d.alias) {
		return fmt.Errorf("dependency %q has disallowed characters in the alias", d.name)
	}
	return nil
}

var aliasFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[a-zA-Z0-9_-]+$") })

func repeated(list []*dependency) bool {
	seen := make(map[string]bool, len(list))
	for _, d := range list {
		key := d.alias
		if key == "" {
			key = sanitize(d.name)
		}
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// sanitize makes every white space a space and takes out what cannot be printed, as Helm does.
func sanitize(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, s)
}
