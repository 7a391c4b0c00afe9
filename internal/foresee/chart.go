package foresee

import (
	"fmt"
	"maps"
	"slices"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/plan"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/values"
)

// digest returns the checksum by which the controller compares values.
func (r *Release) digest(composed map[string]any) (string, error) {
	if r.operated != nil {
		return values.Checksum(composed)
	}
	digest, err := values.Digest(composed)
	return digest.String(), err
}

func (s *Side) newChart(r *Release, found *reconcile.Planned, st *store.Store) *plan.Chart {
	c := &plan.Chart{
		Name: found.Name, Version: found.Version, Digest: found.Digest, Moving: found.Moving,
		Source: r.source, Made: reconcile.MadeOf(r.made),
	}
	if !r.Quick && !found.Moving && found.Artifact != "" { // an archive that was packed here contains times
		c.Digest = ContentDigest(st, found.Artifact)
	}
	if s.recorded && c.Made != "" { // the recorded digest is that of the local archive, not the published one
		c.Digest = ""
	}
	return c
}

// ContentDigest returns a digest of the files of a chart. It returns "" for a chart that cannot be read.
func ContentDigest(st *store.Store, artifact string) string {
	files, err := reconcile.ChartFiles(st, artifact)
	if err != nil {
		return ""
	}
	return DigestOf(files)
}

// DigestOf returns a digest of the names and contents of files.
func DigestOf(files map[string][]byte) string {
	hash := godigest.SHA256.Digester()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(hash.Hash(), "%q %d\n%s", name, len(files[name]), files[name])
	}
	return hash.Digest().String()
}
