package status_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/table"
)

// document returns a HelmChart after a successful run.
func document(t *testing.T) map[string]any {
	t.Helper()
	content := map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1",
		"kind":       "HelmChart",
		"metadata":   map[string]any{"name": "podinfo", "namespace": "default", "creationTimestamp": "2024-05-06T08:07:16Z"},
		"spec": map[string]any{"chart": "podinfo", "version": ">=5.2.0 <6", "interval": "10m",
			"sourceRef": map[string]any{"kind": "HelmRepository", "name": "podinfo"}},
	}
	success := build(oldRevision, status.Pulled)
	conditions, observed := status.Fold(chart, status.Previous{}, status.Outcome{Generation: 1, Stored: success.Stored()}, now)
	size := int64(14166)
	doc, err := status.Document(content, &sourcev1.HelmChartStatus{
		ObservedGeneration:             observed,
		ObservedChartName:              "podinfo",
		ObservedSourceArtifactRevision: "sha256:83a3",
		Conditions:                     conditions,
		URL:                            "file:///a/helmchart/default/podinfo/latest.tar.gz",
		Artifact: &meta.Artifact{Path: "helmchart/default/podinfo/podinfo-5.2.1.tgz", Digest: "sha256:6c3c", Size: &size,
			URL: "file:///a/helmchart/default/podinfo/podinfo-5.2.1.tgz", Revision: "5.2.1",
			LastUpdateTime: metav1.NewTime(now.Local())},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, found := content["status"]; found {
		t.Error("Document changed the content")
	}
	return doc
}

// static returns an OCI HelmRepository, which has no status.
func static(t *testing.T) map[string]any {
	t.Helper()
	doc, err := status.Document(map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1",
		"kind":       "HelmRepository",
		"metadata":   map[string]any{"name": "podinfo", "namespace": "default"},
		"spec":       map[string]any{"type": "oci", "url": "oci://ghcr.io/stefanprodan/charts"},
	}, sourcev1.HelmRepositoryStatus{})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func encode(t *testing.T, format status.Format, docs ...map[string]any) string {
	t.Helper()
	var b bytes.Buffer
	encoder, err := status.NewEncoder(&b, format, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if err := encoder.Encode(doc); err != nil {
			t.Fatal(err)
		}
	}
	if err := encoder.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const chartYAML = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata:
  creationTimestamp: "2024-05-06T08:07:16Z"
  name: podinfo
  namespace: default
spec:
  chart: podinfo
  interval: 10m
  sourceRef:
    kind: HelmRepository
    name: podinfo
  version: '>=5.2.0 <6'
status:
  artifact:
    digest: sha256:6c3c
    lastUpdateTime: "2024-05-06T08:08:09Z"
    path: helmchart/default/podinfo/podinfo-5.2.1.tgz
    revision: 5.2.1
    size: 14166
    url: file:///a/helmchart/default/podinfo/podinfo-5.2.1.tgz
  conditions:
  - lastTransitionTime: "2024-05-06T08:08:09Z"
    message: pulled 'podinfo' chart with version '5.2.1'
    observedGeneration: 1
    reason: ChartPullSucceeded
    status: "True"
    type: Ready
  - lastTransitionTime: "2024-05-06T08:08:09Z"
    message: pulled 'podinfo' chart with version '5.2.1'
    observedGeneration: 1
    reason: ChartPullSucceeded
    status: "True"
    type: ArtifactInStorage
  observedChartName: podinfo
  observedGeneration: 1
  observedSourceArtifactRevision: sha256:83a3
  url: file:///a/helmchart/default/podinfo/latest.tar.gz
`

const staticYAML = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: podinfo
  namespace: default
spec:
  type: oci
  url: oci://ghcr.io/stefanprodan/charts
status: {}
`

func TestYAML(t *testing.T) {
	if got := encode(t, status.YAML, document(t), static(t)); got != chartYAML+staticYAML {
		t.Errorf("case 48, case 20: YAML\n%s", got)
	}
	if got := encode(t, status.YAML); got != "" {
		t.Errorf("no documents: %q", got)
	}
}

func TestJSON(t *testing.T) {
	for n, docs := range [][]map[string]any{{}, {document(t)}, {document(t), static(t)}} {
		got := encode(t, status.JSON, docs...)
		var list struct {
			APIVersion, Kind string
			Items            []map[string]any
		}
		if err := yaml.UnmarshalStrict([]byte(got), &list); err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		if list.APIVersion != "v1" || list.Kind != "List" || len(list.Items) != n || list.Items == nil {
			t.Errorf("list %+v", list)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, []byte(got), "", "    "); err != nil || pretty.String() != got {
			t.Errorf("not indented as kubectl does (%v):\n%s", err, got)
		}
	}
	if got := encode(t, status.JSON, document(t)); !strings.Contains(got, `"version": ">=5.2.0 <6"`) {
		t.Errorf("constraint is escaped:\n%s", got)
	}
}

func TestJSONL(t *testing.T) {
	got := encode(t, status.JSONL, document(t), static(t))
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	if want := `{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"HelmRepository","metadata":{"name":"podinfo",` +
		`"namespace":"default"},"spec":{"type":"oci","url":"oci://ghcr.io/stefanprodan/charts"},"status":{}}`; lines[1] != want {
		t.Errorf("line %s, want %s", lines[1], want)
	}
}

func TestName(t *testing.T) {
	event := status.Event{Reason: "Failed"}.Document(static(t), now)
	event["metadata"].(map[string]any)["name"] = "podinfo.1"
	want := "helmchart.source.toolkit.fluxcd.io/podinfo\nhelmrepository.source.toolkit.fluxcd.io/podinfo\nevent/podinfo.1\n"
	if got := encode(t, status.Name, document(t), static(t), event); got != want {
		t.Errorf("names\n%s", got)
	}
}

func TestTable(t *testing.T) {
	want := `
NAME      CHART     VERSION      SOURCE KIND      SOURCE NAME   AGE   READY   STATUS                                        REVISION   PATH
podinfo   podinfo   >=5.2.0 <6   HelmRepository   podinfo       53s   True    pulled 'podinfo' chart with version '5.2.1'   5.2.1      helmchart/default/podinfo/podinfo-5.2.1.tgz

NAME      URL                                 READY   STATUS   REVISION   PATH
podinfo   oci://ghcr.io/stefanprodan/charts
`
	if got := encode(t, status.Wide, document(t), static(t)); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("table\n%s", got)
	}
	if got := encode(t, status.Wide); got != "" {
		t.Errorf("no documents: %q", got)
	}
}

func TestTableOfSeveralNamespaces(t *testing.T) {
	other := static(t)
	other["metadata"] = map[string]any{"name": "p", "namespace": "apps"}
	bucket := map[string]any{"kind": "Bucket", "metadata": map[string]any{"name": "b", "namespace": "apps"},
		"spec": map[string]any{"endpoint": "minio.example.com"}}
	git := map[string]any{"kind": "GitRepository", "metadata": map[string]any{"name": "g", "namespace": "apps"},
		"spec": map[string]any{"url": "https://example.com/g"}}
	want := `
NAMESPACE   NAME      URL                                 READY   STATUS   REVISION   PATH
default     podinfo   oci://ghcr.io/stefanprodan/charts
apps        p         oci://ghcr.io/stefanprodan/charts

NAMESPACE   NAME   ENDPOINT            READY   STATUS   REVISION   PATH
apps        b      minio.example.com

NAMESPACE   NAME   URL                     READY   STATUS   REVISION   PATH
apps        g      https://example.com/g
`
	if got := encode(t, status.Wide, static(t), bucket, git, other); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("table\n%s", got)
	}
}

func TestWide(t *testing.T) {
	got := strings.Split(encode(t, status.Wide, document(t)), "\n")
	if !strings.HasSuffix(got[0], "REVISION   PATH") ||
		!strings.HasSuffix(got[1], "5.2.1      helmchart/default/podinfo/podinfo-5.2.1.tgz") {
		t.Errorf("wide table\n%s", strings.Join(got, "\n"))
	}
}

// TestEventsComeLast: events follow the tables of all objects.
func TestEventsComeLast(t *testing.T) {
	event := status.Event{Reason: "Failed", Message: "no route to host"}.Document(document(t), now)
	got := encode(t, status.Wide, document(t), event, static(t))
	if chart, repository, events := strings.Index(got, "CHART"), strings.Index(got, "URL"), strings.Index(got, "LAST SEEN"); chart > repository || repository > events || events < 0 {
		t.Errorf("tables\n%s", got)
	}
}

func TestTableOfEvents(t *testing.T) {
	e := status.Event{Warning: true, Reason: "Failed", Message: "no route to host"}
	want := `
LAST SEEN   TYPE      REASON   OBJECT                   MESSAGE
107s        Warning   Failed   helmrepository/podinfo   no route to host
`
	doc := e.Document(static(t), now.Add(-107*time.Second))
	if got := encode(t, status.Wide, doc); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("table\n%s", got)
	}
}

// TestTableIsInert: a message comes from servers, and must neither break the table nor control a terminal.
func TestTableIsInert(t *testing.T) {
	var b bytes.Buffer
	hostile := "a\tb\x1b[2Jc\u202ed\u009be\nsecond line"
	if err := (table.Style{}).Write(&b, []string{"NAME", "STATUS"}, [][]string{{"x", hostile}, {"y", "漢字 é"}}, nil); err != nil {
		t.Fatal(err)
	}
	if want := "NAME   STATUS\nx      a b [2Jc d e...\ny      漢字 é\n"; b.String() != want {
		t.Errorf("table %q, want %q", b.String(), want)
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := status.NewEncoder(&bytes.Buffer{}, "xml", now)
	if want := `unknown output format "xml", must be one of: yaml, json, jsonl, wide, name`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v", err)
	}
}

// TestStreaming: documents are written at once, so that a reader of a long run sees them.
func TestStreaming(t *testing.T) {
	for _, format := range []status.Format{status.YAML, status.JSON, status.JSONL, status.Name} {
		var b bytes.Buffer
		encoder, err := status.NewEncoder(&b, format, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := encoder.Encode(static(t)); err != nil || !strings.Contains(b.String(), "podinfo") {
			t.Errorf("%s: after one document: %q, %v", format, b.String(), err)
		}
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestWriteErrors(t *testing.T) {
	for _, format := range status.Formats() {
		encoder, err := status.NewEncoder(brokenPipe{}, format, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(encoder.Encode(static(t)), encoder.Close()); !errors.Is(err, errPipe) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestMap(t *testing.T) {
	got, err := status.Map(sourcev1.HelmRepositoryStatus{ObservedGeneration: -1})
	if err != nil || !reflect.DeepEqual(got, map[string]any{"observedGeneration": int64(-1)}) {
		t.Errorf("fresh: %v, %v", got, err)
	}
	remembered := map[string]any{"url": "u"}
	if got, err := status.Map(remembered); err != nil || !reflect.DeepEqual(got, remembered) {
		t.Errorf("map: %v, %v", got, err)
	}
	if got, err := status.Map(nil); err != nil || got == nil || len(got) != 0 {
		t.Errorf("nil: %v, %v", got, err)
	}
	if got, err := status.Map(make(chan int)); err == nil {
		t.Errorf("channel: %v", got)
	}
}

// TestEncodeControls checks that no format writes characters that a terminal obeys, and that formats with escapes keep them.
func TestEncodeControls(t *testing.T) {
	const hostile = "a\x1b[31m\u009b31m\x7f\u202e\a\rb"
	for _, format := range status.Formats() {
		var b bytes.Buffer
		e, err := status.NewEncoder(&b, format, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		doc := map[string]any{"apiVersion": "g" + hostile + "/v1", "kind": "A" + hostile, "metadata": map[string]any{"name": hostile}, hostile: hostile}
		if err := errors.Join(e.Encode(doc), e.Close()); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if i := bytes.IndexAny(b.Bytes(), "\x1b\u009b\x7f\a\r"); i >= 0 {
			t.Errorf("%s: %q", format, b.Bytes()[i:])
		}
		if format == status.JSONL {
			var read map[string]any
			if err := json.Unmarshal(b.Bytes(), &read); err != nil || read[hostile] != hostile {
				t.Errorf("%s is read as %q, %v", &b, read[hostile], err)
			}
		}
	}
}

// closed accepts a number of writes, and refuses the rest.
type closed struct{ takes int }

func (c *closed) Write(p []byte) (int, error) {
	if c.takes--; c.takes < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestEncodeRefused: a failed encoding or write is an error in every format.
func TestEncodeRefused(t *testing.T) {
	doc := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	for _, format := range status.Formats() {
		for takes := range 2 {
			e, err := status.NewEncoder(&closed{takes}, format, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(e.Encode(doc), e.Encode(doc), e.Close()); !errors.Is(err, io.ErrClosedPipe) && (takes == 0 || format != status.Wide) {
				t.Errorf("%s, %d writes: %v", format, takes, err)
			}
		}
		if format != status.YAML && format != status.JSON && format != status.JSONL {
			continue
		}
		e, err := status.NewEncoder(io.Discard, format, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Encode(map[string]any{"a": make(chan int)}) == nil {
			t.Errorf("%s of what is no JSON", format)
		}
	}
	for _, format := range []status.Format{"jsonpath={", "xml"} {
		if _, err := status.NewEncoder(io.Discard, format, time.Time{}); err == nil {
			t.Errorf("%s is a format", format)
		}
	}
}
