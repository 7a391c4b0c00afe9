// Package lock reads, writes and compares the file that pins the results of manifests. It opens no file and contacts no
// server.
//
// The file is made to be merged as text. Entries are sorted, each field has a line, and the last line of an entry is a
// sum of the lines before it: two branches that change one entry conflict in that line, and an entry that a merge
// combined from both is refused.
package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// FileName is the default name of a lock file.
const FileName = "helmsrc.lock"

// The version and kind of the file's content.
const (
	APIVersion = "helmsrc.dev/v1alpha1"
	Kind       = "Lock"
)

// MaxBytes is the limit, in bytes, of a lock file. An entry has some 600 bytes, so that is more than 100,000 objects.
const MaxBytes = 64 << 20

// A Lock has one entry for each object of each cluster. Read returns it sorted and valid; callers change entries with Put and
// Drop.
type Lock struct {
	entries  map[Key]*Entry
	clusters []string // that have a name, sorted
}

// New returns a lock without entries.
func New() *Lock { return &Lock{entries: map[Key]*Entry{}} }

// A Key identifies an entry.
type Key struct {
	Cluster string // empty if a repository has one cluster
	Object  string // KIND/NAMESPACE/NAME
}

func (k Key) String() string {
	if k.Cluster == "" {
		return k.Object
	}
	return k.Object + " of " + k.Cluster
}

func (k Key) compare(other Key) int {
	return cmp.Or(strings.Compare(k.Cluster, other.Cluster), strings.Compare(k.Object, other.Object))
}

// An Entry is the resolved chart of one object. It does not depend on the machine, the time or credentials. Fields that do not
// apply to the kind of source are empty.
type Entry struct {
	Object  string `yaml:"object"`
	Cluster string `yaml:"cluster,omitempty"`
	File    string `yaml:"file,omitempty"` // of the manifest, as seen from the directory of the lock file

	// The request of the manifests. An entry fits its object as long as these fields are the same.
	SourceKind string `yaml:"sourceKind"`
	SourceURL  string `yaml:"sourceURL,omitempty"`
	Chart      string `yaml:"chart,omitempty"`
	Constraint string `yaml:"constraint,omitempty"`

	// The result.
	Version        string       `yaml:"version,omitempty"`
	URL            string       `yaml:"url,omitempty"`       // of the archive
	Digest         string       `yaml:"digest,omitempty"`    // of the archive
	Published      string       `yaml:"published,omitempty"` // when the archive was, if files of the package have that time
	Tag            string       `yaml:"tag,omitempty"`       // of a registry
	ManifestDigest string       `yaml:"manifestDigest,omitempty"`
	LayerDigest    string       `yaml:"layerDigest,omitempty"`
	Revision       string       `yaml:"revision,omitempty"` // of Git repositories and buckets
	Package        string       `yaml:"package,omitempty"`  // digest of the archive that helmsrc packaged
	ValuesFiles    []File       `yaml:"valuesFiles,omitempty"`
	Dependencies   []Dependency `yaml:"dependencies,omitempty"`
	Signers        []string     `yaml:"signers,omitempty"`
}

// A File is a values file that was merged into the package. An optional file that is missing has no digest.
type File struct {
	Name   string `yaml:"name"`
	Digest string `yaml:"digest,omitempty"`
}

// A Dependency is a subchart that was downloaded for the package.
type Dependency struct {
	Name           string `yaml:"name"`
	Repository     string `yaml:"repository,omitempty"`
	Constraint     string `yaml:"constraint,omitempty"`
	Version        string `yaml:"version"`
	URL            string `yaml:"url,omitempty"`
	Digest         string `yaml:"digest"`
	ManifestDigest string `yaml:"manifestDigest,omitempty"`
}

// Key returns the key of the entry.
func (e *Entry) Key() Key { return Key{Cluster: e.Cluster, Object: e.Object} }

// Find returns the entries that an object of a cluster can have: its own, else the entry without a cluster or, for a cluster
// without a name, those of all named clusters. They are sorted.
func (l *Lock) Find(k Key) []*Entry {
	if e := l.entries[k]; e != nil {
		return []*Entry{e}
	}
	if k.Cluster != "" {
		if e := l.entries[Key{Object: k.Object}]; e != nil {
			return []*Entry{e}
		}
		return nil
	}
	var found []*Entry
	for _, cluster := range l.clusters {
		if e := l.entries[Key{Cluster: cluster, Object: k.Object}]; e != nil {
			found = append(found, e)
		}
	}
	return found
}

// Clusters returns the names of the clusters that have entries, sorted.
func (l *Lock) Clusters() []string { return l.clusters }

// Put adds an entry, or replaces the entry of the same object.
func (l *Lock) Put(e Entry) {
	l.entries[e.Key()] = &e
	if i, known := slices.BinarySearch(l.clusters, e.Cluster); !known && e.Cluster != "" {
		l.clusters = slices.Insert(l.clusters, i, e.Cluster)
	}
}

// Drop removes the entries for which gone returns true.
func (l *Lock) Drop(gone func(*Entry) bool) {
	for k, e := range l.entries {
		if gone(e) {
			delete(l.entries, k)
		}
	}
	l.clusters = slices.DeleteFunc(l.clusters, func(name string) bool {
		for k := range l.entries {
			if k.Cluster == name {
				return false
			}
		}
		return true
	})
}

// Entries returns all entries, sorted by cluster and object.
func (l *Lock) Entries() []*Entry {
	all := make([]*Entry, 0, len(l.entries))
	for _, e := range l.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *Entry) int { return a.Key().compare(b.Key()) })
	return all
}

// A Difference is a field that differs between an entry and an object, or between two answers for one object.
type Difference struct {
	Field  string // its name in the file
	Locked string
	Now    string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s is %s in the lock file, and now %s", d.Field, orNothing(d.Locked), orNothing(d.Now))
}

func orNothing(s string) string {
	if s == "" {
		return "empty"
	}
	return fmt.Sprintf("%q", s)
}

// A Wanted is the request of an object's manifests.
type Wanted struct {
	SourceKind, SourceURL, Chart, Constraint string
	ValuesFiles                              []string
	// Revision is the revision of the tree that a chart is made of. It is empty for other charts, or if it is unknown.
	Revision string
}

// Fits returns the fields in which an entry differs from its object. Without such fields the entry can be used.
func (e *Entry) Fits(now Wanted) []Difference {
	if now.Revision == "" {
		now.Revision = e.Revision
	}
	return differences(
		Difference{"sourceKind", e.SourceKind, now.SourceKind},
		Difference{"sourceURL", e.SourceURL, now.SourceURL},
		Difference{"chart", e.Chart, now.Chart},
		Difference{"constraint", e.Constraint, now.Constraint},
		Difference{"valuesFiles", strings.Join(e.valuesFiles(), ", "), strings.Join(now.ValuesFiles, ", ")},
		Difference{"revision", e.Revision, now.Revision},
	)
}

// valuesFiles returns the names of the values files.
func (e *Entry) valuesFiles() []string {
	var names []string
	for _, f := range e.ValuesFiles {
		names = append(names, f.Name)
	}
	return names
}

// Dependency returns the locked dependency for a requirement of a chart, or nil.
func (e *Entry) Dependency(name, repository, constraint string) *Dependency {
	i := slices.IndexFunc(e.Dependencies, func(d Dependency) bool {
		return d.Name == name && d.Repository == repository && d.Constraint == constraint
	})
	if i < 0 {
		return nil
	}
	return &e.Dependencies[i]
}

// Moved returns the fields in which the published chart now differs from the entry. A field that is empty on one side is not
// compared: an entry may have been written when less was fetched.
func (e *Entry) Moved(now *Entry) []Difference {
	both := []Difference{
		{"version", e.Version, now.Version},
		{"url", e.URL, now.URL},
		{"digest", e.Digest, now.Digest},
		{"tag", e.Tag, now.Tag},
		{"manifestDigest", e.ManifestDigest, now.ManifestDigest},
		{"layerDigest", e.LayerDigest, now.LayerDigest},
		{"revision", e.Revision, now.Revision},
		{"package", e.Package, now.Package},
	}
	both = slices.DeleteFunc(both, func(d Difference) bool { return d.Locked == "" || d.Now == "" })
	for _, d := range e.Dependencies {
		i := slices.IndexFunc(now.Dependencies, func(o Dependency) bool { return o.Name == d.Name && o.Repository == d.Repository })
		if i < 0 {
			continue
		}
		o := now.Dependencies[i]
		both = append(both, Difference{"dependencies." + d.Name + ".version", d.Version, o.Version},
			Difference{"dependencies." + d.Name + ".digest", d.Digest, o.Digest},
			Difference{"dependencies." + d.Name + ".manifestDigest", d.ManifestDigest, o.ManifestDigest})
	}
	return differences(both...)
}

func differences(all ...Difference) []Difference {
	return slices.DeleteFunc(all, func(d Difference) bool { return d.Locked == d.Now })
}
