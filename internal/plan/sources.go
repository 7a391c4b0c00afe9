package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

const templatesDir = "templates/"

// Sources are the parts of a chart that the operator compares in a dry run: the chart's name, version, appVersion, default values and
// the text of the templates; of its subcharts only the default values.
type Sources struct {
	parts     map[string]string // digests, by the name of the file or field
	subcharts map[string]string
}

// NewSources returns the parts of a chart from its files; its subcharts are in its directory charts.
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

// differences returns the parts that differ, and the default values of subcharts that differ.
func (s *Sources) differences(now *Sources) (fields, subcharts []Field) {
	return differences(s.parts, now.parts), differences(s.subcharts, now.subcharts)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// sumOfYAML returns a digest that is equal for texts that differ only in comments and layout.
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
