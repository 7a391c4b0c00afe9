package locking

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/session"
)

// gone returns the entries whose object is no longer in any file of the input. An input that cannot be read
// completely, or of which arguments select a part, does not show that an object is gone.
func (l *Locking) gone() []*lock.Entry {
	if l.unreadable || len(l.selectors) > 0 && !l.o.Update {
		return nil
	}
	o := l.s.Load
	named := slices.Concat(o.Names, o.Offered)
	var gone []*lock.Entry
	for _, e := range l.lock.Entries() {
		namespace := strings.Split(e.Object, "/")[1]
		if !l.present[e.Key()] && (o.Namespace == "" || o.Namespace == namespace) && l.covers(named, e.File) && l.lookedAt(named, e.Cluster) {
			gone = append(gone, e)
		}
	}
	return gone
}

// lookedAt reports whether a cluster is part of the input, or would be if it existed.
func (l *Locking) lookedAt(named []string, cluster string) bool {
	if cluster == "" || l.clusters[cluster] {
		return true
	}
	return len(l.s.Load.Clusters) == 0 && l.covers(named, cluster+"/"+manifestsOf)
}

// manifestsOf represents the files in the directory of a cluster.
const manifestsOf = "kustomization.yaml"

// fetched reports whether a file belongs to a source that was fetched for a cluster.
func (l *Locking) fetched(file string) bool {
	for _, f := range l.followed {
		if f.Has(file) {
			return true
		}
	}
	return false
}

// covers reports whether a file is part of the input, or would be if it existed.
func (l *Locking) covers(named []string, manifest string) bool {
	if manifest == "" || inFetched(manifest) {
		return l.fetched(manifest)
	}
	return slices.ContainsFunc(named, func(name string) bool {
		at := session.FromLock(l.path, name)
		switch {
		case at == manifest:
			return true
		case at == "" || !file.IsDir(name):
			return false
		}
		rel, err := filepath.Rel(filepath.FromSlash(at), filepath.FromSlash(manifest))
		return err == nil && filepath.IsLocal(rel) && (l.s.Load.Recursive || filepath.Dir(rel) == ".")
	})
}
