package index

import (
	"errors"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestNodesTooMany: the full parser's tree of a chart with too many entries is not decoded.
func TestNodesTooMany(t *testing.T) {
	items := make([]*yaml.Node, maxVersions+1)
	w := &nodeReader{}
	v := w.chart(&yaml.Node{Kind: yaml.SequenceNode, Content: items})
	if !errors.Is(v.err, errTooManyVersions) || !v.known || v.candidates != nil {
		t.Errorf("%v, known %t, %d candidates", v.err, v.known, len(v.candidates))
	}
}
