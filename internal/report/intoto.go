package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// errNoSubject is a run of which nothing has a digest.
var errNoSubject = errors.New("no chart and no artifact has a digest: there is nothing that a statement could be about")

// writeInToto writes an in-toto statement with SLSA provenance: what objects were resolved to, and what of.
func writeInToto(w io.Writer, run *Run) error {
	m := run.materials()
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: "https://slsa.dev/provenance/v1"}
	parameters, err := structpb.NewStruct(map[string]any{"objects": float64(len(run.Objects)), "objectsLeftOut": float64(m.failed)})
	if err != nil {
		return err
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{BuildType: home + "/" + run.Command + "/v1", ExternalParameters: parameters},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: home, Version: map[string]string{"helmsrc": run.Version}},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(run.Started), FinishedOn: timestamppb.New(run.Started.Add(run.Duration))},
		},
	}
	for _, one := range m.list {
		d, err := one.descriptor()
		if err != nil {
			return err
		}
		p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies, d)
		if one.top && len(d.Digest) > 0 {
			s.Subject = append(s.Subject, &intoto.ResourceDescriptor{Name: one.ref, Digest: d.Digest})
		}
	}
	if len(s.Subject) == 0 {
		return errNoSubject
	}
	text, err := protojson.Marshal(p)
	if err != nil {
		return err
	}
	s.Predicate = &structpb.Struct{}
	if err := protojson.Unmarshal(text, s.Predicate); err != nil {
		return err
	}
	if text, err = protojson.Marshal(s); err != nil {
		return err
	}
	var out bytes.Buffer // the spaces of the library are not the same each time
	if err := json.Compact(&out, text); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = out.WriteTo(w)
	return err
}

func (m *material) descriptor() (*intoto.ResourceDescriptor, error) {
	annotations := map[string]any{}
	for _, p := range m.properties() {
		values, _ := annotations[p[0]].([]any)
		annotations[p[0]] = append(values, p[1])
	}
	if m.License != "" {
		annotations["license"] = []any{m.License}
	}
	fields, err := structpb.NewStruct(annotations)
	if err != nil {
		return nil, err
	}
	d := &intoto.ResourceDescriptor{Name: m.Name, Uri: m.ref, DownloadLocation: m.uri(), Annotations: fields}
	if algorithm, encoded := m.digest(); encoded != "" {
		d.Digest = map[string]string{algorithm: encoded}
	}
	return d, nil
}
