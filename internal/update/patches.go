package update

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/edit"
	"github.com/helmsrc/helmsrc/internal/marked"
)

// innerText is the text in a scalar: an inline patch.
type innerText struct {
	*edit.File
	document *edit.Document // with the scalar
}

// inPatch returns the scalar on a line that a JSON patch sets, or that is in an inline patch.
func (p *parsedFile) inPatch(line int, key, from string) (*edit.Document, *yaml.Node) {
	if d, n := marked.At(p.Documents(), line, "value", from); n != nil {
		return d, n
	}
	document, block, line := marked.Inner(p.Documents(), line, from)
	if block == nil || marked.Sealed(document.Root) {
		return nil, nil
	}
	if p.inner[block] == nil {
		if p.inner == nil {
			p.inner = map[*yaml.Node]*innerText{}
		}
		p.inner[block] = &innerText{edit.Parse([]byte(block.Value)), document}
	}
	d, n := marked.At(p.inner[block].Documents(), line, key, from)
	if n == nil {
		d, n = marked.At(p.inner[block].Documents(), line, "value", from)
	}
	return d, n
}

// apply returns the text of the file with its edits, including those in inline patches.
func (p *parsedFile) apply() (text []byte, edits int, refusals map[*yaml.Node]error) {
	refused := map[*yaml.Node]error{}
	for block, in := range p.inner {
		text, _, refusals := in.Apply()
		maps.Copy(refused, refusals)
		if err := in.document.Set(block, string(text)); err != nil {
			p.refuse(in, err, refused)
		}
	}
	text, edits, refusals = p.Apply()
	maps.Copy(refused, refusals)
	for block, in := range p.inner {
		if err := refusals[block]; err != nil {
			p.refuse(in, err, refused)
		}
	}
	return text, edits, refused
}

// refuse records an error for all edits in an inline patch.
func (p *parsedFile) refuse(in *innerText, err error, refused map[*yaml.Node]error) {
	for _, c := range p.edited {
		if slices.Contains(in.Documents(), c.document) {
			refused[c.node] = err
		}
	}
}
