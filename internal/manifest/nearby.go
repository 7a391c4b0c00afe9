package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"unicode"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// An index finds likely targets of a reference to an object that does not exist. It is built once, when the first
// object is missing: a search for each would take as long as all references times all objects.
type index struct {
	files      map[string]int   // by a word, the first unreadable file that contains it
	regrouped  map[key]*Object  // objects in a wrong group, by the key without the group
	unapplied  map[key]*Object  // objects of files that are not applied
	namespaces map[key][]string // the namespaces that have an object, by its key without the namespace
	groups     map[key]*indexed // the objects of a kind in a namespace, by their key without the name
}

type indexed struct {
	names   []string // sorted
	built   []*Object
	renamed func() map[string]string // by the name in the file, the first name that a build made of it
}

func (s *Set) newIndex() *index {
	index := &index{map[string]int{}, map[key]*Object{}, map[key]*Object{}, map[key][]string{}, map[key]*indexed{}}
	for i, f := range slices.Backward(slices.Concat(s.unreadable, s.broken)) {
		for word := range bytes.FieldsFuncSeq(f.text, notInName) {
			index.files[string(word)] = i
		}
	}
	for _, o := range slices.Backward(s.regrouped) {
		index.regrouped[key{"", o.Kind, o.Namespace, o.Name}] = o
	}
	for _, o := range slices.Backward(s.unapplied) {
		index.unapplied[key{o.Group(), o.Kind, o.Namespace, o.Name}] = o
	}
	for _, set := range append([]*Set{s}, s.others()...) {
		index.add(set.byKey)
		index.add(set.data)
	}
	for _, group := range index.groups {
		slices.Sort(group.names)
	}
	return index
}

func (x *index) add(objects map[key][]*Object) {
	for k, same := range objects {
		x.namespaces[key{k.group, k.kind, "", k.name}] = append(x.namespaces[key{k.group, k.kind, "", k.name}], k.namespace)
		group := x.groups[key{k.group, k.kind, k.namespace, ""}]
		if group == nil {
			group = &indexed{}
			group.renamed = sync.OnceValue(group.findRenamed)
			x.groups[key{k.group, k.kind, k.namespace, ""}] = group
		}
		group.names = append(group.names, k.name)
		if same[0].Built != "" {
			group.built = append(group.built, same[0])
		}
	}
}

func (g *indexed) findRenamed() map[string]string {
	renamed := map[string]string{}
	for _, o := range g.built {
		written := o.WrittenName()
		if first, ok := renamed[written]; !ok || o.Name < first {
			renamed[written] = o.Name
		}
	}
	return renamed
}

// notInName reports whether a character cannot be part of a name in a file.
func notInName(r rune) bool {
	return r != '-' && r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// suggestion describes the object nearest to a missing object, or else returns the namespace that has it.
func (s *Set) suggestion(index *index, k key) (text, namespace string) {
	if i, ok := index.files[k.name]; ok {
		return "a file that names it cannot be read: " + slices.Concat(s.unreadable, s.broken)[i].err.Error(), ""
	}
	if o := index.regrouped[key{"", k.kind, k.namespace, k.name}]; o != nil {
		return fmt.Sprintf("%s has it in the group %s: correct that to %s", o.Pos, o.Group(), k.group), ""
	}
	if o := index.unapplied[k]; o != nil {
		return fmt.Sprintf("%s has it, but nothing applies that file", o.Pos), ""
	}
	group := index.groups[key{k.group, k.kind, k.namespace, ""}]
	if group != nil && group.renamed()[k.name] != "" {
		return "there is " + group.renamed()[k.name] + ": kustomize does not add its prefixes, suffixes and hashes to references of this kind", ""
	}
	if namespaces := index.namespaces[key{k.group, k.kind, "", k.name}]; len(namespaces) > 0 {
		return "", slices.Min(namespaces)
	}
	if group != nil {
		if near, ok := finding.Nearest(k.name, group.names); ok {
			return "did you mean " + near + "?", ""
		}
	}
	if i := slices.IndexFunc(s.broken, func(f brokenFile) bool { return f.text == nil }); i >= 0 {
		return "it may be in a file that cannot be read: " + s.broken[i].err.Error(), ""
	}
	if s.unread {
		return fmt.Sprintf("only the first %d manifests of the directories to look in were read", maxSurroundings), ""
	}
	return "", ""
}
