package render

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// mayMake reports whether the spec of a generator has an artifact that has a name, or may get it.
func (r *Renderer) mayMake(g *manifest.Object, name string) bool {
	spec := r.said(g).spec
	return spec != nil && slices.ContainsFunc(spec.OutputArtifacts, func(a swv1.OutputArtifact) bool {
		return a.Name == name || spec.PathPattern != "" && mayRender(a.Name, name)
	})
}

// said is what is read of a generator's or a source's spec, once.
type said struct {
	spec  *swv1.ArtifactGeneratorSpec // nil for one that cannot be read, and for a source
	print [sha256.Size]byte
}

func (r *Renderer) said(o *manifest.Object) *said {
	if s := r.specs[o]; s != nil {
		return s
	}
	text, _ := json.Marshal(o.Content["spec"])
	s := &said{print: sha256.Sum256(text)}
	if isGenerator(o) {
		s.spec = specOf(o)
	}
	r.specs[o] = s
	return s
}

func (r *Renderer) generatorKey(o *manifest.Object, built sources) string {
	return fmt.Sprintf("%s %s %s %x %s", o.Pos, o.Namespace, o.Name, r.said(o).print, r.printOf(built))
}

// sourcesPrint is a digest of the sources of a build, which only ever get more.
type sourcesPrint struct {
	of    sources
	count int
	text  string
}

func (r *Renderer) printOf(built sources) string {
	last := &r.print
	if last.count == len(built) && reflect.ValueOf(last.of).Pointer() == reflect.ValueOf(built).Pointer() {
		return last.text
	}
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(built)) {
		_, _ = fmt.Fprintf(h, "%q %x\n", key, r.said(built[key]).print)
	}
	*last = sourcesPrint{built, len(built), fmt.Sprintf("%x", h.Sum(nil))}
	return last.text
}
