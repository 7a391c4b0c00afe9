package cmd

import (
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
)

// concealNames learns how the objects of an input are called where people see it.
// Names that do not come from a Secret are none, whatever a Secret holds.
func (c *console) concealNames(objects []*manifest.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range objects {
		is := subjectOf(obj)
		kind, namespace, name := obj.Called()
		shown := subject{kind, namespace, name}
		if shown != is {
			c.names[is] = shown
		}
		for _, field := range [][2]string{{is.kind, kind}, {is.namespace, namespace}, {is.name, name}} {
			if field[0] == field[1] {
				c.secrets.Publish(field[0])
			}
		}
	}
}

// called is how an object is called where people see it.
func (c *console) called(s subject) subject {
	if shown, ok := c.names[s]; ok {
		return shown
	}
	return s
}

// concealFinding takes what is not shown out of a finding.
func (c *console) concealFinding(f *finding.Finding) {
	shown := c.called(subject{f.Kind, f.Namespace, f.Name})
	f.Kind, f.Namespace, f.Name = shown.kind, shown.namespace, shown.name
	for _, text := range []*string{&f.Kind, &f.Namespace, &f.Name, &f.Message, &f.Fix, &f.Line, &f.Reason} {
		*text = c.secrets.Text(*text)
	}
}

// concealObject does the same to an object of a report.
func (c *console) concealObject(o *report.Object) {
	shown := c.called(subject{o.Kind, o.Namespace, o.Name})
	o.Kind, o.Namespace, o.Name = shown.kind, shown.namespace, shown.name
	for _, text := range []*string{
		&o.APIVersion, &o.Kind, &o.Namespace, &o.Name, &o.Reason, &o.Message, &o.Version, &o.Revision, &o.Path,
	} {
		*text = c.secrets.Text(*text)
	}
}

// concealResolution does the same to what was resolved of an object.
func (c *console) concealResolution(obj *manifest.Object, r *resolution) {
	shown := c.called(subject{r.Kind, r.Namespace, r.Name})
	r.Kind, r.Namespace, r.Name = shown.kind, shown.namespace, shown.name
	source := c.called(subject{r.Source.Kind, r.Source.Namespace, r.Source.Name})
	r.Source = sourceRef{source.kind, source.namespace, source.name}
	for _, text := range []*string{
		&r.Kind, &r.Namespace, &r.Name, &r.Source.Kind, &r.Source.Namespace, &r.Source.Name,
	} {
		*text = c.secrets.Text(*text)
	}
	for _, text := range []*string{&r.Chart, &r.Constraint, &r.Version} {
		*text = obj.Veil(*text)
	}
	for _, text := range []*string{&r.Chart, &r.Constraint, &r.Version, &r.URL, &r.Error} {
		*text = obj.ConcealText(*text)
	}
}

// concealedTexts copies what an event says about an artifact: its revision may be made of what a Secret holds.
func concealedTexts(obj *manifest.Object, texts map[string]string) map[string]string {
	if texts == nil {
		return nil
	}
	shown := make(map[string]string, len(texts))
	for name, text := range texts {
		shown[name] = obj.Secrets.Text(obj.Veil(text))
	}
	return shown
}

// storedKey is the key by which an object has its files: a name that came from a Secret is another one there.
func storedKey(obj *manifest.Object) store.Key {
	namespace, name := obj.StoredAs()
	return store.NewKey(obj.Kind, namespace, name)
}

// renameStored has the files of such objects called by those keys.
func (in *input) renameStored(st *store.Store) {
	for _, obj := range in.inventory.Objects() {
		if key, stored := store.NewKey(obj.Kind, obj.Namespace, obj.Name), storedKey(obj); key != stored {
			st.Rename(key, stored)
		}
	}
}
