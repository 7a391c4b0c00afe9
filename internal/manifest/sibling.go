package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/file"
)

// maxSiblings is the limit of files that are searched for missing objects, over all directories.
const maxSiblings = 1000

// Lookup returns the object of a reference. An object that is not in the input is looked for beside the files of the
// input, but not deeper, so that a HelmChart finds the HelmRepository in the next file.
func (s *Set) Lookup(group, kind, namespace, name string) (*Object, error) {
	return s.find(key{group, kind, namespace, name}, func(s *Set) map[key][]*Object { return s.byKey })
}

// Notes lists the objects that were found beside the input, in a fixed order.
func (s *Set) Notes() []Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Note
	for _, n := range s.notes {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b Note) int {
		return strings.Compare(a.Kind+"/"+a.Namespace+"/"+a.Name, b.Kind+"/"+b.Namespace+"/"+b.Name)
	})
	return list
}

func (s *Set) find(k key, in func(*Set) map[key][]*Object) (*Object, error) {
	if o, err := one(in(s)[k]); o != nil || err != nil {
		return o, err
	}
	o, err := s.nearby(k, in)
	generator := s.generator(k)
	if o != nil {
		s.note(k, o)
	}
	if o != nil || err != nil {
		return o, err
	}
	missing := &NotFoundError{Group: k.group, Kind: k.kind, Namespace: k.namespace, Name: k.name}
	if generator != nil {
		missing.InCluster, missing.known = true, fmt.Sprintf("%s at %s creates it, in the cluster only", generator, generator.Pos)
	} else {
		index := s.index()
		i, named := index.files[k.name]
		missing.Unread = slices.Contains(s.unknown, "") || slices.Contains(s.unknown, k.namespace) || named && i < len(s.unreadable)
		missing.suggest = func() (text, namespace string) { return s.suggestion(index, k) }
	}
	return nil, missing
}

func (s *Set) note(k key, o *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes[k] = Note{k.kind, k.namespace, k.name, o.Pos}
}

// nearby searches the files beside the input first, then the lookup directories.
func (s *Set) nearby(k key, in func(*Set) map[key][]*Object) (*Object, error) {
	for _, set := range s.others() {
		same := in(set)[k]
		if set == s.surroundings {
			same = s.nearest(same)
		}
		if o, err := one(same); o != nil || err != nil {
			return o, err
		}
	}
	return nil, nil
}

// others returns the sets of objects outside the input, the nearest first.
func (s *Set) others() []*Set {
	var list []*Set
	for _, set := range []*Set{s.siblings, s.surroundings} {
		if set != nil {
			list = append(list, set)
		}
	}
	return list
}

func one(same []*Object) (*Object, error) {
	switch len(same) {
	case 0:
		return nil, nil
	case 1:
		return same[0], nil
	}
	return nil, duplicate(same)
}

type brokenFile struct {
	err  error
	text []byte
}

// readBeside reads the manifests beside the named files. An unreadable file is not an error: the user did not name it.
func (l *loader) readBeside() {
	budget := maxSiblings
	for _, dir := range l.in.dirs {
		entries, err := file.ReadDir(dir)
		if err != nil {
			l.in.beside = append(l.in.beside, unread(err))
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if e.IsDir() || !isManifestName(name) {
				continue
			}
			if budget--; budget < 0 || l.ctx.Err() != nil {
				break
			}
			if l.outside(dir, name, e) {
				continue
			}
			l.in.beside = l.referable(l.in.beside, name)
		}
	}
	l.parse(l.in.beside)
}

// referable adds a file to a list if the file cannot be read or may contain an object that a reference needs.
func (l *loader) referable(list []*File, name string) []*File {
	data, err := l.other(name)
	switch {
	case err != nil:
		return append(list, unread(err))
	case !referable(data):
		return list
	}
	return append(list, &File{Name: name, referenceOnly: true, data: data})
}

// other reads a file that no argument names, once. It returns no data for a file that was read before, and a broken link.
func (l *loader) other(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case file.Missing(err), err == nil && (info.IsDir() || !l.seen.first(info)):
		return nil, nil
	case err == nil:
		err = file.Regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	return read(l.ctx, name)
}

// unread returns a File for an unreadable file or directory, which may contain a missing object.
func unread(err error) *File { return &File{referenceOnly: true, errs: []error{plain(err)}} }

// referable reports whether a file may contain an object that a reference needs.
func referable(data []byte) bool {
	return mentionsFlux(data) || begins(data) || bytes.Contains(data, []byte("Secret")) ||
		bytes.Contains(data, []byte("ServiceAccount")) || bytes.Contains(data, []byte("ConfigMap")) || bytes.Contains(data, []byte("kind: Namespace"))
}

// begins reports whether a file may define the first objects of a cluster: it has a FluxInstance, or the values of one.
func begins(data []byte) bool {
	return bytes.Contains(data, []byte(OperatorGroup)) || bytes.Contains(data, []byte("instance:")) && bytes.Contains(data, []byte("sync:"))
}
