package reconcile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// fingerprintOf returns a fingerprint that is equal for two builds of the same
// artifact with the same version of helmsrc.
func fingerprintOf(parts ...any) string {
	b, err := json.Marshal(append([]any{chart.PackageFormat}, parts...))
	if err != nil { // a time after the year 9999: such an artifact equals no other
		return rand.Text()
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// record returns the record for the next run. Its status has no URLs, which
// depend on where the directory is served.
func (p *reconciliation) record() (*store.Record, error) {
	b, err := p.statusWithoutURLs()
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	object, err := json.Marshal(p.result.content())
	if err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	record := &store.Record{Fingerprint: p.fingerprint, Tag: string(p.tag), Cluster: p.r.o.Cluster, Chart: p.chart, Values: p.result.Values, Object: object, Status: b}
	if p.out.Failure != nil {
		record.Failure = string(CodeOf(p.out.Failure))
		record.BlockedBy = recordedBlocker(p.out.Failure)
	}
	return record, nil
}

// recordedBlocker returns the object that blockerOf returns as KIND/NAMESPACE/NAME, by the name under which it is shown.
func recordedBlocker(failure *status.Failure) string {
	by := blockerOf(failure)
	if blocked, ok := errors.AsType[*blockedError](failure); ok {
		by.Kind, by.Namespace, by.Name = blocked.by.Called()
	} else if rejected, ok := errors.AsType[*inventory.RejectedError](failure); ok {
		by.Kind, by.Namespace, by.Name = rejected.Object.Called()
	}
	if by == (finding.Object{}) {
		return ""
	}
	return strings.Join([]string{by.Kind, by.Namespace, by.Name}, "/")
}

func (p *reconciliation) statusWithoutURLs() ([]byte, error) {
	p.kind.save(p.typed, p.status.withoutURL())
	if !p.adm.Object.Tainted() {
		return json.Marshal(p.kind.parts(p.typed).status)
	}
	fields, err := status.Map(p.kind.parts(p.typed).status)
	if err != nil {
		return nil, err
	}
	return json.Marshal(p.adm.Object.VeilStatus(fields))
}

// fullStatus returns the status of the object with all its fields, as far as they are set.
func (p *reconciliation) fullStatus() any {
	p.kind.save(p.typed, p.status)
	return p.kind.parts(p.typed).status
}

type addresses struct {
	directory  string
	advertised string // see Options.AdvertisedAddress
}

func (s commonStatus) withoutURL() commonStatus {
	if s.artifact != nil {
		s.artifact = s.artifact.DeepCopy()
		s.artifact.URL = ""
	}
	return s
}

// withURLs sets the URLs of the artifact and of the link to the newest
// artifact.
func (s commonStatus) withURLs(a addresses, link string) commonStatus {
	if s.artifact == nil {
		return s
	}
	s.artifact = s.artifact.DeepCopy()
	s.artifact.URL = a.urlOf(s.artifact.Path)
	if link != "" {
		s.url = a.urlOf(path.Join(path.Dir(s.artifact.Path), link))
	}
	return s
}

// urlOf returns the URL of a path in the artifacts directory. As in
// source-controller, a "+" is not escaped.
func (a addresses) urlOf(artifact string) string {
	address := a.advertised
	if address == "" {
		return (&url.URL{Scheme: "file", Path: path.Join(slashed(a.directory), artifact)}).String()
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	return strings.TrimRight(address, "/") + "/" + artifact
}

// slashed converts an absolute path of the system to the path of a file URL.
func slashed(dir string) string {
	dir = strings.ReplaceAll(dir, `\`, "/")
	if !strings.HasPrefix(dir, "/") {
		dir = "/" + dir
	}
	return dir
}

// Document returns the whole object as it is printed: the input with defaults,
// and the status. URLs are redacted in every field.
func (r *Result) Document() (map[string]any, error) {
	shown, err := status.Map(r.Status)
	if err != nil {
		return nil, err
	}
	content := r.content()
	if r.Cluster != "" { // not part of a record
		annotate(content, status.ClusterAnnotation, r.Cluster)
	}
	return status.Document(content, r.Object.Object.ConcealStatus(shown))
}

func (r *Result) note(key, value string) {
	if r.notes == nil {
		r.notes = map[string]string{}
	}
	r.notes[key] = value
}

func (r *Result) noteChart(c store.ReleasedChart) {
	if c.Name == "" {
		return
	}
	r.note(status.ChartAnnotation, c.Name)
	r.note(status.VersionAnnotation, c.Version)
	r.note(status.ArtifactAnnotation, c.Artifact)
}

// content computes the document without its status. It is not kept: thousands of documents would take too much memory.
func (r *Result) content() map[string]any {
	concealed := r.Object.Object.Conceal(r.Object.Content)
	// Annotations may quote whole manifests, so it is not enough to redact the fields that hold URLs.
	content, _ := conceal.Fields(concealed, func(_, text string) string { return auth.RedactText(text) }).(map[string]any)
	keepValues(content, concealed)
	for key, value := range r.notes {
		annotate(content, key, auth.RedactText(value))
	}
	return content
}

func annotate(content map[string]any, key, value string) {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[key] = value
}

// keepValues restores the URLs in the values of a release, without passwords: a query there is configuration. Values
// of Secrets are already concealed.
func keepValues(content map[string]any, concealed any) {
	whole, _ := concealed.(map[string]any)
	given, _ := whole["spec"].(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	if values, ok := given["values"]; ok && content["kind"] == "HelmRelease" && spec != nil {
		spec["values"] = conceal.Fields(values, func(_, text string) string { return auth.RedactLogins(text) })
	}
}

// archiveFile returns the file name for the archive of a chart in the artifacts directory: its name and version, veiled
// if they come from a Secret.
func (p *reconciliation) archiveFile(build status.Build) string {
	name := archiveName(build)
	stem := strings.TrimSuffix(name, ".tgz")
	return p.adm.Object.Veil(stem) + strings.TrimPrefix(name, stem)
}

// isVeiled reports whether recorded is a name, in clear or as a status veils it.
func (p *reconciliation) isVeiled(recorded, name string) bool {
	return recorded == name || recorded == p.adm.Object.Veil(name)
}

// unveiled returns a recorded status in which the names that the object reveals are in clear.
func unveiled(obj *manifest.Object, text []byte) ([]byte, error) {
	if !obj.Tainted() {
		return text, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(obj.UnveilStatus(fields))
}
