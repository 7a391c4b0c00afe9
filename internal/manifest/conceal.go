package manifest

import (
	"slices"
	"strings"
)

const (
	// concealed stands for what is not printed.
	concealed = "REDACTED"

	// minConcealed is the shortest text that is looked for inside of other texts. A shorter one is concealed where it
	// was put, not in messages: it would be found in every second word.
	minConcealed = 6
)

// Confide remembers what is not printed of an object: the texts, and the object as it may be shown, nil for one that
// only differs by these texts.
func (o *Object) Confide(texts []string, shown map[string]any) {
	for _, t := range texts {
		if t != "" && !slices.Contains(o.confidential, t) {
			o.confidential = append(o.confidential, t)
		}
	}
	if shown != nil {
		o.shown = shown
	}
}

// Shown is what may be shown of an object, whose content is given.
func (o *Object) Shown(content map[string]any) map[string]any {
	if o.shown != nil {
		return o.shown
	}
	return content
}

// Conceal copies a document of the object without what is not printed. What the object is called stays.
func (o *Object) Conceal(document any) any {
	switch {
	case o.shown != nil:
		return renamed(overlay(document, o.Content, o.shown), document)
	case len(o.confidential) > 0:
		return renamed(concealIn(document, Concealer(o.secrets())), document)
	}
	return document
}

// renamed gives a copy of a document its name back.
func renamed(document, original any) any {
	copied, _ := document.(map[string]any)
	meta, _ := copied["metadata"].(map[string]any)
	from, _ := original.(map[string]any)
	was, _ := from["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace"} {
		if name, ok := was[field]; ok && meta != nil {
			meta[field] = name
		}
	}
	return document
}

// Confidential tells whether there is anything that is not printed.
func (o *Object) Confidential() bool { return len(o.confidential) > 0 || o.shown != nil }

// ConcealText does the same to a message.
func (o *Object) ConcealText(text string) string {
	if len(o.confidential) == 0 {
		return text
	}
	return Concealer(o.secrets()).Replace(text)
}

// secrets are the confidential texts but those that the name of the object is made of: what it is called is no secret.
func (o *Object) secrets() []string {
	return slices.DeleteFunc(slices.Clone(o.confidential), o.calledBy)
}

// calledBy tells whether a text was put into the name or namespace of the object.
func (o *Object) calledBy(text string) bool {
	if o.Origin != nil {
		return o.Origin.calledBy(text)
	}
	meta, _ := o.shown["metadata"].(map[string]any)
	for field, name := range map[string]string{"namespace": o.Namespace, "name": o.Name} {
		if shown, ok := meta[field].(string); ok && shown != name && strings.Contains(name, text) {
			return true
		}
	}
	return false
}

// Confidential are the texts of all objects that are not printed. Names of objects are, and what they were made of: lines
// without them would be of no use.
func (s *Set) Confidential() []string {
	var all []string
	for _, o := range s.objects {
		all = append(all, o.confidential...)
	}
	if len(all) == 0 {
		return nil
	}
	public := map[string]bool{}
	for _, o := range s.objects {
		public[o.Namespace], public[o.Name] = true, true
		for _, text := range o.confidential {
			public[text] = public[text] || o.calledBy(text)
		}
	}
	return slices.DeleteFunc(all, func(text string) bool { return public[text] })
}

// Concealer replaces texts that are not printed, the longest first.
func Concealer(texts []string) *strings.Replacer {
	texts = slices.Clone(texts)
	slices.SortFunc(texts, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, t := range slices.Compact(texts) {
		if len(t) >= minConcealed {
			pairs = append(pairs, t, concealed)
		}
	}
	return strings.NewReplacer(pairs...)
}

func concealIn(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return r.Replace(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = concealIn(e, r)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[r.Replace(k)] = concealIn(e, r)
		}
		return m
	}
	return v
}

// overlay takes from shown what differs from content there, wherever the document still has what content has.
func overlay(document, content, shown any) any {
	switch d := document.(type) {
	case map[string]any:
		c, _ := content.(map[string]any)
		s, ok := shown.(map[string]any)
		if !ok {
			return d
		}
		m := make(map[string]any, len(d))
		for k, e := range d {
			m[k] = e
			if other, there := s[k]; there {
				m[k] = overlay(e, c[k], other)
			} else if _, there := c[k]; there {
				m[k] = concealed // the key itself was substituted
			}
		}
		return m
	case []any:
		c, _ := content.([]any)
		s, _ := shown.([]any)
		list := slices.Clone(d)
		for i := range list {
			if i < len(s) && i < len(c) {
				list[i] = overlay(list[i], c[i], s[i])
			}
		}
		return list
	}
	if !equal(content, shown) {
		return shown
	}
	return document
}
