package finding

import (
	"cmp"
	"slices"
)

// Object names an object, and a place that concerns it.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Pos       Pos    `json:"place,omitzero"`
}

// String returns the object without its place, as messages name it.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Object returns the object of a finding, at the place of the finding.
func (f Finding) Object() Object { return Object{f.Kind, f.Namespace, f.Name, f.Pos} }

// objectKey identifies an object, regardless of its place.
type objectKey struct{ kind, namespace, name string }

func (o Object) key() objectKey { return objectKey{o.Kind, o.Namespace, o.Name} }

// Fold returns the findings without those that another failure caused: Blocks of the first error of the cause lists their
// objects. A cycle is one finding, which blocks the other members.
func Fold(found []Finding) []Finding {
	causes := Causes(found)
	blocks := map[int][]Object{}
	for i, cause := range causes {
		if blocked := found[i].listed(); cause != i && blocked.key() != found[cause].Object().key() {
			blocks[cause] = addObject(blocks[cause], blocked)
		}
	}
	var left []Finding
	for i, f := range found {
		if causes[i] == i {
			f.Blocks = append(slices.Clone(f.Blocks), blocks[i]...)
			left = append(left, f)
		}
	}
	return left
}

// Causes returns the index of the cause of each finding: its own, or that of the first error of an object that blocks its
// object, directly or through further objects. If the cause is not in the list, the nearest effect in the list replaces it.
func Causes(found []Finding) []int {
	c := causes{own: map[objectKey]int{}, effects: map[objectKey]int{}, found: found}
	for i, f := range found {
		key, at := f.Object().key(), c.own
		if f.BlockedBy != (Object{}) {
			at = c.effects
		}
		if _, known := at[key]; !known && f.Severity == Error {
			at[key] = i
		}
	}
	first := firstOfCycles(found)
	list := make([]int, len(found))
	for i, f := range found {
		list[i] = i
		if f.BlockedBy != (Object{}) {
			list[i] = c.root(i)
		}
		if member, ok := first[found[list[i]].cycle()]; ok {
			list[i] = member
		}
	}
	return list
}

// cycleKey is equal for the members of a cycle, because their messages are equal.
type cycleKey struct{ kind, message string }

// cycle returns the key of the cycle that a finding reports, or the zero value for other findings.
func (f *Finding) cycle() cycleKey {
	if f.Code != DependencyCycle || f.BlockedBy != (Object{}) {
		return cycleKey{}
	}
	return cycleKey{f.Kind, f.Message}
}

// firstOfCycles returns the index of the finding that represents each cycle: that of the first member in alphabetical order,
// which the message names first, if it is in the list.
func firstOfCycles(found []Finding) map[cycleKey]int {
	first := map[cycleKey]int{}
	for i := range found {
		key := found[i].cycle()
		if key == (cycleKey{}) {
			continue
		}
		at, known := first[key]
		if !known || cmp.Or(cmp.Compare(found[i].Namespace, found[at].Namespace), cmp.Compare(found[i].Name, found[at].Name)) < 0 {
			first[key] = i
		}
	}
	return first
}

// causes indexes findings by object.
type causes struct {
	own     map[objectKey]int // the first error that is not an effect
	effects map[objectKey]int // the first effect
	found   []Finding
}

// root follows the objects that block the object of an effect. Objects that block each other have no cause.
func (c *causes) root(effect int) int {
	at := effect
	for range len(c.effects) + 1 {
		key := c.found[at].BlockedBy.key()
		if i, ok := c.own[key]; ok {
			return i
		}
		next, ok := c.effects[key]
		if !ok {
			return at
		}
		at = next
	}
	return effect
}

// listed returns the object of an effect as a user knows it: the object of a file that it is made of, if any.
func (f *Finding) listed() Object {
	if f.MadeOf == (Object{}) {
		return f.Object()
	}
	made := f.MadeOf
	made.Pos = f.Pos
	return made
}

func addObject(list []Object, o Object) []Object {
	if slices.ContainsFunc(list, func(known Object) bool { return known.key() == o.key() }) {
		return list
	}
	return append(list, o)
}

// Unite joins the same finding of two clusters, with the objects that it blocks in both. A different place is in Related.
func (f Finding) Unite(other Finding) Finding {
	f.Blocks = slices.Clone(f.Blocks)
	for _, o := range other.Blocks {
		f.Blocks = addObject(f.Blocks, o)
	}
	if other.Pos != f.Pos && !slices.Contains(f.Related, other.Pos) {
		f.Related = append(slices.Clone(f.Related), other.Pos)
	}
	return f
}
