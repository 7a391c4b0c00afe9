package chart

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/transform"
	helmchart "helm.sh/helm/v3/pkg/chart"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxNeighbours is the limit of names that are compared to find a similar one.
const maxNeighbours = 1000

// EffectiveValuesFiles returns the values files that have an effect: [values.yaml] alone is an empty list, as in
// source-controller, also if it would be another file than the chart's own.
func EffectiveValuesFiles(files []string) []string {
	if len(files) == 1 && path.Clean(filepath.ToSlash(files[0])) == valuesFile {
		return nil
	}
	return files
}

// MergeValues merges values files of a chart from a repository, which are inside the chart. It returns the result and
// the files that it was made of, in order; with ignoreMissing, missing files are skipped. In the list values.yaml names
// the chart's default values.
func MergeValues(c *helmchart.Chart, files []string, ignoreMissing bool) (map[string]any, []string, error) {
	return mergeFiles(files, func(p string) (map[string]any, error) {
		name := path.Clean(filepath.ToSlash(p))
		if name == valuesFile {
			return defaultValues(c, p)
		}
		if data, ok := ValuesFile(c, p); ok {
			return parseValues(data, p)
		}
		if ignoreMissing {
			return nil, fs.SkipDir
		}
		return nil, missingValues(fmt.Sprintf("no values file found at path '%s'", printable(p)), "the chart contains '%s'", similar(name, fileNames(c.Files)))
	})
}

// MergeValues merges values files of a chart from a Git repository or a bucket, which are looked up from the root of
// the source and not from the chart's directory. A path cannot climb above the root. The directory of the chart is only
// used for a hint.
func (s Source) MergeValues(chartDir string, files []string, ignoreMissing bool) (map[string]any, []string, error) {
	return mergeFiles(files, func(p string) (map[string]any, error) {
		name := clamp(p)
		data, err := s.readValues(name)
		if ignoreMissing && errors.Is(err, fs.ErrNotExist) {
			return nil, fs.SkipDir
		}
		if errors.Is(err, errNoFile) {
			return nil, missingValues(fmt.Sprintf("no values file found at path '%s' (reference '%s')", printable(rooted(name)), printable(p)),
				"the source contains '%s'; values files are looked up from its root", s.similarFile(name, clamp(chartDir)))
		}
		if err != nil {
			return nil, err
		}
		return parseValues(data, p)
	})
}

// ValuesFile returns the contents of a values file of a chart from a repository, false if it is missing.
func ValuesFile(c *helmchart.Chart, file string) ([]byte, bool) {
	name := path.Clean(filepath.ToSlash(file))
	if name == valuesFile {
		return rawValues(c), true
	}
	i := slices.IndexFunc(c.Files, func(f *helmchart.File) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return c.Files[i].Data, true
}

// ValuesFile returns the contents of a values file of the source, false if it is missing.
func (s Source) ValuesFile(file string) ([]byte, bool) {
	data, err := s.readValues(clamp(file))
	return data, err == nil
}

// mergeFiles merges the values that read returns for each file; read returns fs.SkipDir for a file to skip.
func mergeFiles(files []string, read func(string) (map[string]any, error)) (map[string]any, []string, error) {
	merged, used := map[string]any{}, []string{}
	for _, p := range files {
		values, err := read(p)
		if errors.Is(err, fs.SkipDir) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		merged = transform.MergeMaps(merged, values)
		used = append(used, p)
	}
	return merged, used, nil
}

// defaultValues reads values.yaml as source-controller's Helm does: it merges later documents over the earlier
// documents.
func defaultValues(c *helmchart.Chart, reference string) (map[string]any, error) {
	merged := map[string]any{}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(rawValues(c))))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return merged, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unmarshaling values from '%s' failed: %w", reference, err)
		}
		values, err := parseValues(doc, reference)
		if err != nil {
			return nil, err
		}
		merged = transform.MergeMaps(merged, values)
	}
}

// rawValues returns the last values.yaml, which counts if there are several.
func rawValues(c *helmchart.Chart) []byte {
	for _, f := range slices.Backward(c.Raw) {
		if f.Name == valuesFile {
			return f.Data
		}
	}
	return nil
}

// parseValues parses values, with numbers as written: long numbers would change as floating point numbers.
func parseValues(data []byte, reference string) (map[string]any, error) {
	values := map[string]any{}
	exact := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }
	if err := yaml.Unmarshal(data, &values, exact); err != nil {
		return nil, fmt.Errorf("unmarshaling values from '%s' failed: %w", reference, err)
	}
	return values, nil
}

func (s Source) readValues(name string) ([]byte, error) {
	real, info, err := s.resolve(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoFile, err)
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	data, err := s.readFile(real, name)
	if finding.CodeOf(err) == finding.TooLarge {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("could not read values from file '%s': %w", printable(name), err)
	}
	return bytes.TrimPrefix(data, byteOrderMark), nil
}

// OverwriteValues makes merged the chart's default values and reports whether that changes anything. An empty map makes
// an empty values.yaml, as in source-controller. A chart without a values.yaml does not get one.
func OverwriteValues(c *helmchart.Chart, merged map[string]any) (bool, error) {
	var data []byte
	if len(merged) > 0 {
		var err error
		if data, err = yaml.Marshal(merged); err != nil {
			return false, fmt.Errorf("encoding values failed: %w", err)
		}
	}
	is := func(f *helmchart.File) bool { return f.Name == valuesFile }
	if !slices.ContainsFunc(c.Raw, is) {
		return false, fmt.Errorf("failed to locate values file: %s", valuesFile)
	}
	if bytes.Equal(rawValues(c), data) {
		return false, nil
	}
	// Parsed as Helm would parse it, for a caller that renders the chart without packaging it first.
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return false, fmt.Errorf("decoding values failed: %w", err)
	}
	c.Values = values
	c.Raw = append(slices.DeleteFunc(c.Raw, is), &helmchart.File{Name: valuesFile, Data: data})
	return true, nil
}

// missingValues reports that a values file is missing, with a hint at the similar file, if it is not "".
func missingValues(text, hint, similar string) error {
	p := &finding.Problem{Code: finding.ValuesFiles, Text: text}
	if similar != "" {
		p.Advice = fmt.Sprintf(hint, printable(similar))
	}
	return p
}

func fileNames(files []*helmchart.File) []string {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// similar returns the YAML file that a missing name most likely means, "" if no file is similar.
func similar(want string, have []string) string {
	slices.Sort(have)
	stem := func(name string) string { return strings.TrimSuffix(path.Base(name), path.Ext(name)) }
	files := map[string]string{}
	for _, name := range slices.Backward(have) {
		if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
			files[stem(name)] = name
		}
	}
	near, _ := finding.Nearest(stem(want), slices.Sorted(maps.Keys(files)))
	return files[near]
}

// similarFile returns a YAML file similar to a missing one: at the same path below the chart, else in the directories
// of both paths.
func (s Source) similarFile(name, chartDir string) string {
	below := path.Join(chartDir, name)
	if _, info, err := s.resolve(below); err == nil && info.Mode().IsRegular() {
		return below
	}
	var found []string
	for _, dir := range []string{path.Dir(name), path.Dir(below)} {
		real, _, err := s.resolve(dir)
		if err != nil {
			continue
		}
		for _, e := range s.neighbours(real) {
			if p := path.Join(dir, e.Name()); e.Type().IsRegular() && !s.hidden(p, false) {
				found = append(found, p)
			}
		}
	}
	return similar(name, found)
}

func (s Source) neighbours(real string) []fs.DirEntry {
	dir, err := s.Root.OpenRoot(filepath.FromSlash(real))
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, err := readDir(dir, maxNeighbours)
	if err != nil {
		return nil
	}
	return entries
}
