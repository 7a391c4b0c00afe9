package load

import (
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/render"
)

// expansionsOf are the artifacts of generators with a pathPattern, as far as the files show them.
func expansionsOf(rendered *render.Result) map[string][]inventory.Expansion {
	expansions := map[string][]inventory.Expansion{}
	for _, e := range rendered.Expansions {
		name := e.Generator.Namespace + "/" + e.Generator.Name
		expansions[name] = append(expansions[name], inventory.Expansion{Index: e.Index, Name: e.Name, Labels: e.Labels})
	}
	return expansions
}
