package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/conceal"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// fingerprintOf is equal for two builds that would give the same artifact, if the
// same version of helmsrc makes them.
func fingerprintOf(parts ...any) (string, error) {
	b, err := json.Marshal(append([]any{chart.PackageFormat}, parts...))
	if err != nil {
		return "", fmt.Errorf("fingerprint: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// record is what the next run will remember: the status without URLs, which
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
		if by := blockerOf(p.out.Failure); by != (finding.Object{}) {
			record.BlockedBy = strings.Join([]string{by.Kind, by.Namespace, by.Name}, "/")
		}
	}
	return record, nil
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

// withURLs fills in where the artifact and the link to the newest one can be
// reached.
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

// urlOf is the URL of a path in the artifacts directory. As source-controller
// does, it writes a "+" as it is.
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

// slashed makes an absolute path of the system into the path of a file URL.
func slashed(dir string) string {
	dir = strings.ReplaceAll(dir, `\`, "/")
	if !strings.HasPrefix(dir, "/") {
		dir = "/" + dir
	}
	return dir
}

// Document is the whole object as it is printed: what was given, with defaults,
// and its status. URLs are redacted wherever they stand.
func (r *Result) Document() (map[string]any, error) {
	shown, err := status.Map(r.Status)
	if err != nil {
		return nil, err
	}
	content := r.content()
	if r.Cluster != "" { // which no record says
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

// content is the document without its status. It is made again where it is needed twice, not kept for thousands of objects.
func (r *Result) content() map[string]any {
	concealed := r.Object.Object.Conceal(r.Object.Content)
	// Annotations may quote whole manifests: it is not enough to look at the fields that are URLs.
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

// keepValues gives the values of a release back their URLs as they were written, without passwords: what is in a query
// there is configuration. What came from a Secret is concealed before.
func keepValues(content map[string]any, concealed any) {
	whole, _ := concealed.(map[string]any)
	given, _ := whole["spec"].(map[string]any)
	spec, _ := content["spec"].(map[string]any)
	if values, ok := given["values"]; ok && content["kind"] == "HelmRelease" && spec != nil {
		spec["values"] = conceal.Fields(values, func(_, text string) string { return auth.RedactLogins(text) })
	}
}

// archiveFile is what the archive of a chart is called in the artifacts directory: by its name and version, unless these
// are made of what came from a Secret.
func (p *reconciliation) archiveFile(build status.Build) string {
	name := archiveName(build)
	stem := strings.TrimSuffix(name, ".tgz")
	return p.adm.Object.Veil(stem) + strings.TrimPrefix(name, stem)
}

// isVeiled reports whether a name in a status is another one, or what it is called there.
func (p *reconciliation) isVeiled(recorded, name string) bool {
	return recorded == name || recorded == p.adm.Object.Veil(name)
}

// unveiled is a recorded status with the names that are known from the object.
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
