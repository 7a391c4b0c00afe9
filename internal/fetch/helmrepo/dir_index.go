package helmrepo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	godigest "github.com/opencontainers/go-digest"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// maxLocalFiles is the limit of files in a directory without an index. Repositories of this size have an index.
const maxLocalFiles = 50_000

var errNoCharts = errors.New("directory contains neither an index.yaml nor a chart archive (.tgz)")

// generateIndex returns an index of Archives, or of the chart archives in the directory, not below it. It depends only on the
// archives: it has no times, and is sorted by file name. As in "helm repo index", files that are not charts are left out, with a
// warning.
func (d *Directory) generateIndex(ctx context.Context) (string, error) {
	names, err := d.archiveNames()
	if err != nil {
		return "", err
	}
	entries := map[string][]any{}
	for _, name := range names {
		if ctx.Err() != nil {
			return "", fetch.EndOf(ctx)
		}
		meta, entry, err := indexEntry(d.root, name, d.Limits)
		if err != nil {
			fetch.Warn(ctx, fmt.Errorf("%s is left out of the index: %w", finding.OneLine(name, fetch.MaxName), err))
			continue
		}
		entries[meta.Name] = append(entries[meta.Name], entry)
	}
	if len(entries) == 0 {
		return "", errNoCharts
	}
	content, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": entries})
	return string(content), err
}

func (d *Directory) archiveNames() ([]string, error) {
	if d.Archives != nil {
		return slices.Sorted(slices.Values(d.Archives)), nil
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	files, err := dir.ReadDir(maxLocalFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(files) > maxLocalFiles {
		return nil, fmt.Errorf("directory without an index.yaml contains more than %d files", maxLocalFiles)
	}
	var names []string
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".tgz") && !f.IsDir() {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// indexEntry returns the index entry of an archive: its metadata, its place, its digest.
func indexEntry(root *os.Root, name string, limits chart.Limits) (*helmchart.Metadata, map[string]any, error) {
	f, _, err := openRegular(root, name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	sum := digest.NewWriter(godigest.SHA256)
	meta, _, err := chart.Check(io.TeeReader(f, sum), limits.Named(name))
	if err != nil {
		return nil, nil, err
	}
	content, err := json.Marshal(meta)
	if err != nil {
		return nil, nil, err
	}
	var entry map[string]any
	if err := json.Unmarshal(content, &entry); err != nil {
		return nil, nil, err
	}
	entry["urls"] = []string{(&url.URL{Path: name}).String()}
	entry["digest"] = sum.Digest().Encoded()
	return meta, entry, nil
}
