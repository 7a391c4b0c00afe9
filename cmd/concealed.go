package cmd

import (
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/report"
)

// concealObject takes what is not shown out of an object of a report.
func (a *app) concealObject(o *report.Object) {
	shown := a.console.Called(console.Subject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})
	o.Kind, o.Namespace, o.Name = shown.Kind, shown.Namespace, shown.Name
	a.console.ConcealObject(&o.BlockedBy)
	for _, text := range []*string{
		&o.APIVersion, &o.Kind, &o.Namespace, &o.Name, &o.Reason, &o.Message, &o.Version, &o.Revision, &o.Path,
	} {
		*text = a.console.Secrets().Text(*text)
	}
}

// concealResolution does the same to what was resolved of an object.
func (a *app) concealResolution(obj *manifest.Object, r *resolution) {
	shown := a.console.Called(console.Subject{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	r.Kind, r.Namespace, r.Name = shown.Kind, shown.Namespace, shown.Name
	source := a.console.Called(console.Subject{Kind: r.Source.Kind, Namespace: r.Source.Namespace, Name: r.Source.Name})
	r.Source = sourceRef{source.Kind, source.Namespace, source.Name}
	for _, text := range []*string{
		&r.Kind, &r.Namespace, &r.Name, &r.Source.Kind, &r.Source.Namespace, &r.Source.Name,
	} {
		*text = a.console.Secrets().Text(*text)
	}
	for _, text := range []*string{&r.Chart, &r.Constraint, &r.Version} {
		*text = obj.VeilField(*text)
	}
	for _, text := range []*string{&r.URL, &r.Error} {
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
