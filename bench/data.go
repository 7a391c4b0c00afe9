//go:build bench

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

// size is the size of a repository.
type size struct {
	Name             string
	Charts, Versions int
}

// scale is the data of one run of this program.
type scale struct {
	Indexes []size
	Tags    int
	Many    int // charts that are fetched in one run
	Objects int // to validate

	Apps, HookApps, HomeApps int // with a Kustomization each, in a repository of one cluster
	Clusters, ClusterApps    int // of a repository
}

func scaleOf(o *options) scale {
	if o.smoke {
		return scale{Indexes: slices.Concat([]size{{"small", 3, 4}, {"large", 6, 8}}, umbrellaSizes(6, 4), lockedSizes(3, 2)), Tags: 250, Many: 5, Objects: 20, Apps: 20, HookApps: 5, HomeApps: 6, Clusters: 3, ClusterApps: 2}
	}
	return scale{Indexes: slices.Concat([]size{{"small", 120, 130}, {"large", 400, 500}}, umbrellaSizes(100, 50), lockedSizes(25, 12)), Tags: 10_000, Many: 100, Objects: 500, Apps: 2000, HookApps: 120, HomeApps: 350, Clusters: 30, ClusterApps: 20}
}

// chosen returns the requested chart and version, in the middle of the index.
func (s size) chosen() (chart, version string) {
	return indextest.ChartName(s.Charts / 2), indextest.Version(s.Versions / 2)
}

// archiveFill is the size of an archive, in bytes, that is usual for charts.
const archiveFill = 60 << 10

// newArchive packages a chart that compresses as little as nested archives do. The same arguments give the same bytes.
func newArchive(name, version string) (helmtest.Chart, []byte, error) {
	c := helmtest.NewChart(name, version)
	fill := make([]byte, archiveFill)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name + "-" + version))).Read(fill)
	b, err := c.With("files/data.bin", string(fill)).Package()
	return c, b, err
}

// writeRepository writes an index and the given archives into a directory.
func writeRepository(dir string, s size, many int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var index bytes.Buffer
	if err := indextest.Generate(&index, s.Charts, s.Versions, ""); err != nil {
		return err
	}
	chart, version := s.chosen()
	wanted := map[string]string{chart: version}
	for i := range min(many, s.Charts) {
		wanted[indextest.ChartName(i)] = version
	}
	for chart, version := range wanted {
		_, archive, err := newArchive(chart, version)
		if err != nil {
			return err
		}
		file := fmt.Sprintf("%s-%s.tgz", chart, version)
		if err := publish(index.Bytes(), file, archive); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), archive, 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "index.yaml"), index.Bytes(), 0o600)
}

// publish replaces the invented digest in the archive's entry by its real digest.
func publish(index []byte, file string, archive []byte) error {
	const field = "\n    digest: "
	at := bytes.Index(index, []byte("\n    - "+file+"\n"))
	if at >= 0 {
		at = bytes.LastIndex(index[:at], []byte(field))
	}
	if at < 0 {
		return fmt.Errorf("the index has no entry for %s", file)
	}
	sum := sha256.Sum256(archive)
	hex.Encode(index[at+len(field):], sum[:])
	return nil
}
