package console

import (
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// ConcealNames records the shown names of the objects of an input.
// Names that do not come from a Secret are shown, even if a Secret has the same text.
func (c *Console) ConcealNames(objects []*manifest.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range objects {
		is := Subject{obj.Kind, obj.Namespace, obj.Name}
		kind, namespace, name := obj.Called()
		shown := Subject{kind, namespace, name}
		if shown != is {
			c.names[is] = shown
		}
		for _, field := range [][2]string{{is.Kind, kind}, {is.Namespace, namespace}, {is.Name, name}} {
			if field[0] == field[1] {
				c.secrets.Publish(field[0])
			}
		}
	}
}

// Called returns the shown name of an object.
func (c *Console) Called(s Subject) Subject {
	if shown, ok := c.names[s]; ok {
		return shown
	}
	return s
}

// ConcealObject replaces the names of an object by the shown ones.
func (c *Console) ConcealObject(o *finding.Object) {
	shown := c.Called(Subject{o.Kind, o.Namespace, o.Name})
	o.Kind, o.Namespace, o.Name = c.secrets.Text(shown.Kind), c.secrets.Text(shown.Namespace), c.secrets.Text(shown.Name)
}

// concealFinding removes the values of Secrets from a finding.
func (c *Console) concealFinding(f *finding.Finding) {
	shown := c.Called(SubjectOf(*f))
	f.Kind, f.Namespace, f.Name = shown.Kind, shown.Namespace, shown.Name
	f.Blocks = slices.Clone(f.Blocks)
	for i := range f.Blocks {
		c.ConcealObject(&f.Blocks[i])
	}
	for _, text := range []*string{&f.Kind, &f.Namespace, &f.Name, &f.Message, &f.Fix, &f.Line, &f.Reason} {
		*text = c.secrets.Text(*text)
	}
}
