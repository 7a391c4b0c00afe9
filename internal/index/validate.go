package index

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/Masterminds/semver/v3"
)

// metadata holds the fields that Helm's rules for the metadata of a chart check. A nil item is a null in the list.
type metadata struct {
	name, version, typ string
	maintainers        []bool // whether the item is there
	dependencies       []*dependency
}

type dependency struct{ name, alias string }

// valid reports whether Helm keeps an entry of an index. An entry without apiVersion counts as v1, so apiVersion is not
// checked.
func (m *metadata) valid() bool {
	if m.name == "" || m.name == "." || m.name == ".." || strings.Contains(m.name, "/") {
		return false
	}
	if _, err := semver.NewVersion(m.version); err != nil {
		return false
	}
	return slices.Contains([]string{"", "application", "library"}, m.typ) && !slices.Contains(m.maintainers, false) && validDependencies(m.dependencies)
}

// validDependencies accepts a name or alias that occurs twice: repositories of JFrog lose the alias. Helm stops there, so
// the dependencies after it are not checked.
func validDependencies(list []*dependency) bool {
	wrong := slices.IndexFunc(list, func(d *dependency) bool {
		return d == nil || d.alias != "" && !aliasFormat().MatchString(d.alias)
	})
	return wrong < 0 || repeated(list[:wrong])
}

var aliasFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[a-zA-Z0-9_-]+$") })

func repeated(list []*dependency) bool {
	seen := make(map[string]bool, len(list))
	for _, d := range list {
		key := cmp.Or(d.alias, sanitize(d.name))
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// sanitize replaces white space with spaces and removes unprintable characters, as Helm does.
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
