package report

import (
	"encoding/json"
	"errors"
	"io"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// writeInToto writes an in-toto statement with SLSA provenance: the charts of the objects, and their materials.
func writeInToto(w io.Writer, run *Run) error {
	m := run.materials()
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1", Predicate: &structpb.Struct{}}
	parameters := map[string]*structpb.Value{"objects": structpb.NewNumberValue(float64(len(run.Objects))), "objectsLeftOut": structpb.NewNumberValue(float64(m.failed))}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{BuildType: home + "/" + run.Command + "/v1", ExternalParameters: &structpb.Struct{Fields: parameters}},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: home, Version: map[string]string{"helmsrc": run.Version}},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(run.Started), FinishedOn: timestamppb.New(run.Started.Add(run.Duration))},
		},
	}
	for _, one := range m.list {
		d := one.descriptor()
		p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies, d)
		if one.top && len(d.Digest) > 0 {
			s.Subject = append(s.Subject, &intoto.ResourceDescriptor{Name: one.ref, Digest: d.Digest})
		}
	}
	if len(s.Subject) == 0 {
		return errors.New("no chart and no artifact has a digest: the statement has no subject")
	}
	text, err := protojson.Marshal(p)
	err = errors.Join(err, protojson.Unmarshal(text, s.Predicate))
	if err == nil {
		text, err = protojson.Marshal(s)
	}
	if err != nil {
		return err
	}
	return EncodeLines(w, []json.RawMessage{text}) // the library writes spaces that differ from run to run
}

func (m *material) descriptor() *intoto.ResourceDescriptor {
	annotations := map[string]*structpb.Value{}
	properties := m.properties()
	if m.License != "" {
		properties = append(properties, [2]string{"license", m.License})
	}
	for _, p := range properties {
		if annotations[p[0]] == nil {
			annotations[p[0]] = structpb.NewListValue(&structpb.ListValue{})
		}
		list := annotations[p[0]].GetListValue()
		list.Values = append(list.Values, structpb.NewStringValue(p[1]))
	}
	d := &intoto.ResourceDescriptor{Name: m.Name, Uri: m.ref, DownloadLocation: m.uri(), Annotations: &structpb.Struct{Fields: annotations}}
	if algorithm, encoded := m.digest(); encoded != "" {
		d.Digest = map[string]string{algorithm: encoded}
	}
	return d
}
