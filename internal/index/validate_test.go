package index

import (
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// TestValidate holds the rules against Helm's.
func TestValidate(t *testing.T) {
	ok := func() *helmchart.Metadata { return &helmchart.Metadata{APIVersion: "v1", Name: "a", Version: "1.0.0"} }
	named := func(name string) *helmchart.Metadata { m := ok(); m.Name = name; return m }
	version := func(v string) *helmchart.Metadata { m := ok(); m.Version = v; return m }
	typ := func(v string) *helmchart.Metadata { m := ok(); m.Type = v; return m }
	needs := func(list ...*helmchart.Dependency) *helmchart.Metadata { m := ok(); m.Dependencies = list; return m }
	dep := func(name, alias string) *helmchart.Dependency { return &helmchart.Dependency{Name: name, Alias: alias} }
	by := func(list ...*helmchart.Maintainer) *helmchart.Metadata { m := ok(); m.Maintainers = list; return m }

	tests := []*helmchart.Metadata{
		ok(), named(""), named("."), named(".."), named("..."), named("a/b"), named("/a"), named("a/"), named("a b"),
		named("a\tb"), named("\x01"), named("\u200b"), named("\u00a0"), named("ä"), named(" "), named(".\x00"),
		version(""), version("1"), version("1.2"), version("v1.2.3"), version("01.2.3"), version("1.2.3-01"), version("1.2.3+a_b"),
		version("1.2.3.4"), version("latest"), version(" 1.2.3"), version("1.2.3\n"), version("2025.02.03"), version("1.2.3-"),
		typ("application"), typ("library"), typ("Library"), typ(" "),
		by(), by(nil), by(&helmchart.Maintainer{}), by(&helmchart.Maintainer{}, nil),
		needs(nil), needs(dep("a", "")), needs(dep("a", "b"), dep("a", "c")), needs(dep("a", "b c")), needs(dep("a", "b_C-1")),
		needs(dep("a", "b"), dep("b", "")), needs(dep("a", ""), dep("a", ""), nil), needs(dep("a", ""), nil, dep("a", "")),
		needs(dep("a", ""), dep("a", ""), dep("b", "!")), needs(dep("a\t", ""), dep("a\n", ""), nil), needs(dep("", ""), dep("", "")),
		needs(dep("a", "ü")), needs(dep("a", "b\n")), needs(dep("x", "a\t"), dep("a ", ""), nil),
	}
	for _, m := range tests {
		mine := metadata{name: sanitize(m.Name), version: m.Version, typ: m.Type}
		for _, person := range m.Maintainers {
			mine.maintainers = append(mine.maintainers, person != nil)
		}
		for _, d := range m.Dependencies {
			if d == nil {
				mine.dependencies = append(mine.dependencies, nil)
				continue
			}
			mine.dependencies = append(mine.dependencies, &dependency{name: d.Name, alias: d.Alias})
		}
		got := mine.valid()
		text := strings.TrimSpace(strings.Join([]string{m.Name, m.Version, m.Type}, " "))
		want := m.Validate()
		if want != nil && strings.HasPrefix(want.Error(), "validation: more than one dependency with name or alias") {
			want = nil
		}
		if got != (want == nil) {
			t.Errorf("%q: got %v, Helm says %v", text, got, want)
		}
	}
}

// TestSlash is a known difference: a slash alone is its own base name, so Helm accepts it. No file can have that name.
func TestSlash(t *testing.T) {
	m := metadata{name: "/", version: "1.0.0"}
	if m.valid() {
		t.Error("a chart named / is accepted")
	}
}
