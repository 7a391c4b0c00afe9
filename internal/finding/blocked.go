package finding

import (
	"cmp"
	"slices"
)

// Object names an object, and a place that has to do with it.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Pos       Pos    `json:"place,omitzero"`
}

// String is the object without its place, as messages name it.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Object is the object that a finding is about, at the place of the finding.
func (f Finding) Object() Object { return Object{f.Kind, f.Namespace, f.Name, f.Pos} }

// objectKey identifies an object wherever it is mentioned.
type objectKey struct{ kind, namespace, name string }

func (o Object) key() objectKey { return objectKey{o.Kind, o.Namespace, o.Name} }

// Fold returns the findings without those that are effects of others: the object of an effect is in Blocks of the first
// error of its cause. A cycle is one finding, which blocks the other members.
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

// Causes says for each finding which of them is its cause: itself, or the first error of an object that blocks its own,
// through others too. Where the cause is not among the findings, the one that is next to it stands for it.
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

// cycleKey is equal for the members of a cycle, whose messages are the same.
type cycleKey struct{ kind, message string }

// cycle is the zero value for a finding about anything else.
func (f *Finding) cycle() cycleKey {
	if f.Code != DependencyCycle || f.BlockedBy != (Object{}) {
		return cycleKey{}
	}
	return cycleKey{f.Kind, f.Message}
}

// firstOfCycles returns the finding of each cycle that stands for all: that of the member that the message names first, if it is
// there.
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

// causes knows which findings objects have.
type causes struct {
	own     map[objectKey]int // the first error that is no effect
	effects map[objectKey]int // the first that is one
	found   []Finding
}

// root follows what blocks the object of an effect. Objects that block each other have no cause.
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

// listed is the object of an effect as a person knows it: by the object of a file that it is made of.
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

// Unite is the same finding of two clusters as one, with what it blocks in both. What is not in the same place is in Related.
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
