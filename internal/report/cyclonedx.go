package report

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// writeCycloneDX writes a bill of materials of CycloneDX 1.6.
func writeCycloneDX(w io.Writer, run *Run) error {
	m := run.materials()
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + m.id
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: run.Started.UTC().Format(time.RFC3339),
		Tools:     &cyclonedx.ToolsChoice{Components: &[]cyclonedx.Component{{Type: cyclonedx.ComponentTypeApplication, Name: "helmsrc", Version: run.Version}}},
	}
	bom.Components, bom.Dependencies = &[]cyclonedx.Component{}, &[]cyclonedx.Dependency{}
	for _, one := range m.list {
		*bom.Components = append(*bom.Components, one.cycloneDX())
		*bom.Dependencies = append(*bom.Dependencies, cyclonedx.Dependency{Ref: one.ref, Dependencies: &one.parts})
	}
	if m.failed > 0 {
		bom.Compositions = &[]cyclonedx.Composition{{Aggregate: cyclonedx.CompositionAggregateIncomplete}}
	}
	return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

func (m *material) cycloneDX() cyclonedx.Component {
	types := map[ComponentKind]cyclonedx.ComponentType{
		ComponentChart: cyclonedx.ComponentTypeApplication, ComponentImage: cyclonedx.ComponentTypeContainer,
		ComponentArtifact: cyclonedx.ComponentTypeFile, ComponentFiles: cyclonedx.ComponentTypeFile,
	}
	c := cyclonedx.Component{BOMRef: m.ref, Type: types[m.Kind], Name: m.Name, Version: m.Version, PackageURL: m.ref, Properties: &[]cyclonedx.Property{}}
	reference := cyclonedx.ExternalReference{URL: m.uri(), Type: cyclonedx.ERTypeDistribution}
	if m.Kind == ComponentFiles {
		reference.Type = cyclonedx.ERTypeVCS
	}
	if reference.URL != "" {
		c.ExternalReferences = &[]cyclonedx.ExternalReference{reference}
	}
	if expression := m.expression(); expression != "" {
		c.Licenses = &cyclonedx.Licenses{{Expression: expression}}
	} else if m.License != "" {
		c.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{Name: m.License}}}
	}
	if algorithm, encoded := m.digest(); encoded != "" {
		name := cyclonedx.HashAlgorithm(strings.Replace(strings.ToUpper(algorithm), "SHA", "SHA-", 1))
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: name, Value: encoded}}
	}
	for _, p := range m.properties() {
		*c.Properties = append(*c.Properties, cyclonedx.Property{Name: "helmsrc:" + p[0], Value: p[1]})
	}
	return c
}

// properties returns the names and values of facts for which the formats have no field.
func (m *material) properties() [][2]string {
	list := [][2]string{{"kind", string(m.Kind)}}
	for name, values := range map[string][]string{"found-in": m.Found, "manifest": {m.Manifest}, "revision": {m.Revision}, "signed-by": m.Signers, "source": {m.URL}} {
		for _, value := range values {
			if value != "" {
				list = append(list, [2]string{name, value})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}
