package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

const templatesDir = "templates/"

// Sources are what the operator compares of two charts in a dry run: of the chart itself name, version, appVersion, default values and
// the text of the templates; of its subcharts the default values alone.
type Sources struct {
	parts     map[string]string // digests, by the name of the file or field
	subcharts map[string]string
}

// NewSources takes them out of the files of a chart, which has its subcharts in its directory charts.
func NewSources(files map[string][]byte) *Sources {
	s := &Sources{parts: map[string]string{}, subcharts: map[string]string{}}
	for name, data := range files {
		switch {
		case name == "Chart.yaml":
			var metadata struct{ Name, Version, AppVersion string }
			if err := yaml.Unmarshal(data, &metadata); err != nil {
				s.parts[name] = sumOf(data)
				continue
			}
			s.parts["name"], s.parts["version"], s.parts["appVersion"] = metadata.Name, metadata.Version, metadata.AppVersion
		case name == "values.yaml":
			s.parts[name] = sumOfYAML(data)
		case strings.HasPrefix(name, templatesDir):
			s.parts[name] = sumOf(data)
		case strings.HasPrefix(name, "charts/") && path.Base(name) == "values.yaml" && path.Base(path.Dir(path.Dir(name))) == "charts":
			s.subcharts[name] = sumOfYAML(data)
		}
	}
	return s
}

// differences are what two charts differ in, and which default values of subcharts.
func (s *Sources) differences(now *Sources) (fields, subcharts []Field) {
	return differences(s.parts, now.parts), differences(s.subcharts, now.subcharts)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sumOfYAML is equal for texts that differ in comments and layout alone.
func sumOfYAML(data []byte) string {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return sumOf(data)
	}
	text, err := yaml.Marshal(v)
	if err != nil {
		return sumOf(data)
	}
	return sumOf(text)
}
