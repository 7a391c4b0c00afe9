package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/helmsrc/helmsrc/internal/conceal"
)

// Confide records texts of the object that must not be printed, and the object as it may be shown. shown is nil if
// the object may be shown apart from these texts.
func (o *Object) Confide(texts []string, shown map[string]any) {
	for _, t := range texts {
		if t != "" && !slices.Contains(o.confidential, t) {
			o.confidential = append(o.confidential, t)
		}
	}
	if shown != nil {
		o.shown = shown
	}
	o.Secrets.Add(texts...)
}

// Shown returns the form of the object that may be shown, or content if Confide recorded no such form.
func (o *Object) Shown(content map[string]any) map[string]any {
	if o.shown != nil {
		return o.shown
	}
	return content
}

// Confidential returns the texts of the object that must not be printed.
func (o *Object) Confidential() []string { return o.confidential }

// Tainted reports whether a part of the object came from a Secret or was encrypted.
func (o *Object) Tainted() bool { return len(o.confidential) > 0 || o.shown != nil }

// Conceal returns a copy of a document of the object without its confidential texts and the secrets of the run.
func (o *Object) Conceal(document any) any {
	given, _ := document.(map[string]any)
	switch {
	case o.shown != nil:
		document = overlay(document, o.Content, o.shown)
	case len(o.confidential) > 0:
		document = conceal.Mapped(document, func(text string) string { return conceal.Within(text, o.confidential) })
	}
	if o.Secrets == nil {
		return document
	}
	document = o.Secrets.Tree(document)
	if m, ok := document.(map[string]any); ok && given["kind"] != nil {
		m["apiVersion"], m["kind"] = given["apiVersion"], given["kind"] // a kind of this program's may be shown
	}
	return document
}

// ConcealText returns a message without the confidential texts of the object and the secrets of the run.
func (o *Object) ConcealText(text string) string {
	return o.Secrets.Text(conceal.Within(text, o.confidential))
}

// Mute keeps values out of every message about a fault of the object, whose content contains them. They are not secrets
// in other objects. A field with such a value inside a word is not quoted either: the rest of the word would reveal it.
func (o *Object) Mute(values []string, content map[string]any) {
	if len(values) == 0 {
		return
	}
	o.muted = append(o.muted, values...)
	conceal.Mapped(content, func(field string) string {
		if slices.ContainsFunc(values, func(value string) bool { return conceal.InWord(field, value) }) {
			o.muted = append(o.muted, field)
		}
		return field
	})
}

// Muted returns the values and fields that Mute recorded.
func (o *Object) Muted() []string { return o.muted }

// ConcealError is ConcealText for a message about a fault of the object: it conceals the muted values too.
func (o *Object) ConcealError(text string) string {
	return o.ConcealText(conceal.Within(text, conceal.Forms(o.muted)))
}

// ConcealStatus conceals every text of a status except type, status and reason, which programs compare.
func (o *Object) ConcealStatus(status any) any {
	return conceal.Fields(status, func(key, text string) string {
		switch key {
		case "message":
			return o.ConcealText(text)
		case "type", "status", "reason":
			return text
		}
		return o.Secrets.Text(text)
	})
}

// Called returns the kind, namespace and name under which the object is shown: parts of them may have come from a Secret.
func (o *Object) Called() (kind, namespace, name string) {
	kind, namespace, name = o.Kind, o.Namespace, o.Name
	_, shownKind, shownNamespace, shownName := Identify(o.Shown(o.Content))
	for _, field := range []struct {
		text  *string
		shown string
	}{{&kind, Called(o.APIVersion, shownKind)}, {&namespace, shownNamespace}, {&name, shownName}} {
		if field.shown != "" && field.shown != *field.text {
			*field.text = leaf(field.shown)
		}
	}
	if o.Origin != nil { // its name is derived from the name of its origin
		namespace, name = o.Origin.calledIn(namespace), o.Origin.calledIn(name)
	}
	return kind, namespace, name
}

// CalledText returns KIND NAMESPACE/NAME of the object as it is shown.
func (o *Object) CalledText() string {
	kind, namespace, name := o.Called()
	return kind + " " + namespace + "/" + name
}

func (o *Object) calledIn(text string) string {
	_, namespace, name := o.Called()
	for _, as := range [][2]string{{o.Name, name}, {o.Namespace, namespace}} {
		if as[0] != as[1] {
			text = strings.ReplaceAll(text, as[0], as[1])
		}
	}
	return text
}

// overlay returns document with the parts of shown that differ from content, wherever document still equals content.
func overlay(document, content, shown any) any {
	if reflect.DeepEqual(content, shown) {
		return document
	}
	switch d := document.(type) {
	case map[string]any:
		c, was := content.(map[string]any)
		s, is := shown.(map[string]any)
		if !was || !is {
			break
		}
		m := make(map[string]any, len(d))
		for k, e := range d {
			other, visible := s[k]
			_, given := c[k]
			switch {
			case visible:
				m[k] = overlay(e, c[k], other)
			case given:
				m[conceal.Hidden] = conceal.Hidden // the key itself contains the secret
			default:
				m[k] = e
			}
		}
		return m
	case []any:
		c, was := content.([]any)
		s, is := shown.([]any)
		if !was || !is || len(c) != len(s) || len(c) != len(d) {
			break
		}
		list := slices.Clone(d)
		for i := range list {
			list[i] = overlay(list[i], c[i], s[i])
		}
		return list
	}
	return leaf(shown)
}

// leaf returns the visible form of a partly concealed field. Without a mark for that part the whole field is concealed.
func leaf(shown any) string {
	if text, ok := shown.(string); ok && strings.Contains(text, conceal.Hidden) {
		return text
	}
	return conceal.Hidden
}

// Taints lists the texts of content that are missing from shown: the concealed parts of each field that differs, and
// the whole field if a part is too common to be searched for.
func Taints(content, shown any) []string {
	var texts []string
	taints(content, shown, func(text string) {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	})
	return texts
}

func taints(content, shown any, add func(string)) {
	if reflect.DeepEqual(content, shown) {
		return
	}
	switch c := content.(type) {
	case nil:
	case map[string]any:
		s, _ := shown.(map[string]any)
		for k, v := range c {
			other, visible := s[k]
			if !visible {
				add(k)
			}
			taints(v, other, add)
		}
	case []any:
		s, _ := shown.([]any)
		for i, v := range c {
			if len(s) == len(c) {
				taints(v, s[i], add)
			} else {
				taints(v, nil, add)
			}
		}
	default:
		field := fmt.Sprint(c)
		for _, part := range conceal.Parts(field, leaf(shown)) {
			add(part)
			if !conceal.Distinguishing(part) {
				add(field)
			}
		}
	}
}
