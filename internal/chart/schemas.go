package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"

	"github.com/helmsrc/helmsrc/internal/bound"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// CheckSchemas returns an error with the code [finding.SchemaReference] if values.schema.json of a chart or a subchart
// refers to another document. It leaves a schema that is not JSON to Helm.
func CheckSchemas(c *helmchart.Chart) error { return checkSchemas(c, c.Name()) }

func checkSchemas(c *helmchart.Chart, at string) error {
	file := at + "/" + schemaFile
	if err := bound.Check(c.Schema); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var root any
	if json.Unmarshal(c.Schema, &root) == nil {
		if err := newSchema(file, root).check(root, ""); err != nil {
			return err
		}
	}
	for _, sub := range c.Dependencies() {
		if err := checkSchemas(sub, at+"/"+chartsDir+sub.Name()); err != nil {
			return err
		}
	}
	return nil
}

// A schema is a document with the addresses of the places in it that a reference may name in full.
type schema struct {
	file string
	// bases holds the addresses of the document and of definitions with their own address, by JSON pointer.
	bases map[string]*url.URL
	known map[string]bool
	// whole is true for a document whose data may be schemas, too.
	whole bool
}

// below is the path of all places deeper than definitions.
const below = "//"

var escaped = strings.NewReplacer("~", "~0", "/", "~1")

const schemaDraft4 = "http://json-schema.org/draft-04/schema"

// newSchema finds the addresses of the document and of its definitions, as programs that bundle schemas write them.
// Every reader of the draft knows these addresses; newSchema ignores any other.
func newSchema(file string, root any) *schema {
	s := &schema{file: file, bases: map[string]*url.URL{}, known: map[string]bool{}}
	object, _ := root.(map[string]any)
	draft, _ := object["$schema"].(string)
	base := &url.URL{Scheme: "file", Path: "/" + schemaFile}
	s.add("", base, object, draft)
	if s.bases[""] == nil {
		s.bases[""] = base
		s.known[base.String()] = true
	}
	for _, keyword := range []string{"definitions", "$defs"} {
		if keyword == "$defs" && strings.Contains(draft, "/draft-0") {
			continue
		}
		members, _ := object[keyword].(map[string]any)
		for name, member := range members {
			if m, ok := member.(map[string]any); ok {
				s.add("/"+keyword+"/"+escaped.Replace(name), s.bases[""], m, draft)
			}
		}
	}
	s.whole = misleads(root, false)
	return s
}

// leadsOut reports that the schema refers to something outside of itself: Helm would read a file of this machine, or
// send a request to a server.
func (s *schema) leadsOut(keyword, reference string) error {
	return &finding.Problem{
		Code: finding.SchemaReference, Text: fmt.Sprintf("%s: %s '%s' leads out of the chart", printable(s.file), keyword, printable(reference)),
		Advice: "copy the referenced schema to $defs, or render without it: spec.install.disableSchemaValidation",
	}
}

// memberKeywords are the keywords of a schema whose value is a map of schemas. The value of a dataKeyword is not a
// schema, even if it looks like one.
var (
	memberKeywords = []string{"properties", "patternProperties", "definitions", "$defs", "dependencies", "dependentSchemas"}
	dataKeywords   = []string{"default", "enum", "const", "examples"}
	refKeywords    = []string{"$ref", "$dynamicRef", "$recursiveRef"}
)

// misleads reports whether a reference in a schema may lead to data, or to a map of schemas, which would then be a schema.
func misleads(value any, named bool) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return misleads(item, false) })
	case map[string]any:
		for name, item := range v {
			ref, ok := item.(string)
			switch {
			case !named && slices.Contains(dataKeywords, name):
			case ok && slices.Contains(refKeywords, name) && toData(ref), misleads(item, !named && slices.Contains(memberKeywords, name)):
				return true
			}
		}
	}
	return false
}

// toData reports whether a reference may lead to a place that the walk through the document does not take for a schema.
// A reference by $id may lead to any place: readers of schemas differ in the addresses that they know.
func toData(ref string) bool {
	pointer, err := url.PathUnescape(ref)
	if err != nil || strings.Trim(ref, "#") == "" {
		return err != nil
	}
	pointer, found := strings.CutPrefix(pointer, "#/")
	named := false // the next part is the name of a member
	for part := range strings.SplitSeq(pointer, "/") {
		if !named && slices.Contains(dataKeywords, part) {
			return true
		}
		named = !named && slices.Contains(memberKeywords, part)
	}
	return named || !found
}

func (s *schema) add(at string, base *url.URL, object map[string]any, draft string) {
	keyword := "$id"
	if strings.HasPrefix(strings.Replace(draft, "https:", "http:", 1), schemaDraft4) {
		keyword = "id"
	}
	_, refers := object["$ref"]
	own, given := object["$schema"]
	id, _ := object[keyword].(string)
	if id, _, _ = strings.Cut(id, "#"); id == "" || refers && strings.Contains(draft, "/draft-0") || given && own != draft {
		return
	}
	if u, err := base.Parse(id); err == nil {
		s.bases[at] = u
		s.known[u.String()] = true
	}
}

// check visits every value of the document, including values that are not schemas, as a reference could name them.
func (s *schema) check(value any, at string) error {
	return s.within(value, at, s.bases[""], false)
}

// within checks a value below the address base, which is nil if not sure. With named, the value is a map of schemas.
func (s *schema) within(value any, at string, base *url.URL, named bool) error {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := s.within(item, below, base, false); err != nil {
				return err
			}
		}
	case map[string]any:
		if own := s.bases[at]; own != nil {
			base = own
		} else if given(v["$id"]) || given(v["id"]) {
			base = nil
		}
		for _, keyword := range []string{"$id", "id"} {
			// The address is a different one after a reference is resolved against it.
			if id, _ := v[keyword].(string); strings.Contains(id, "?") || opaque(id) {
				return s.leadsOut(keyword, id)
			}
		}
		for _, keyword := range append([]string{"$schema"}, refKeywords...) {
			if ref, ok := v[keyword].(string); ok && !s.stays(keyword, ref, base) {
				return s.leadsOut(keyword, ref)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !s.whole && !named && slices.Contains(dataKeywords, name) {
				continue
			}
			next := below
			if strings.Count(at, "/") < 2 {
				next = at + "/" + escaped.Replace(name)
			}
			if err := s.within(v[name], next, base, !named && slices.Contains(memberKeywords, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func given(id any) bool {
	text, ok := id.(string)
	return ok && text != ""
}

func opaque(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Opaque != "" && u.Scheme+":" != urn
}

// urn is the prefix of names that Helm never looks up.
const urn = "urn:"

// drafts are the addresses of the documents that every Helm has.
var drafts = map[string]bool{
	"json-schema.org/schema": true, "json-schema.org/draft-04/schema": true, "json-schema.org/draft-06/schema": true,
	"json-schema.org/draft-07/schema": true, "json-schema.org/draft/2019-09/schema": true, "json-schema.org/draft/2020-12/schema": true,
}

func (s *schema) stays(keyword, ref string, base *url.URL) bool {
	document, _, _ := strings.Cut(ref, "#")
	if strings.HasPrefix(strings.ToLower(document), urn) {
		return true
	}
	_, address, _ := strings.Cut(document, "://")
	if drafts[address] && (strings.HasPrefix(document, "http://") || strings.HasPrefix(document, "https://")) {
		return true
	}
	if keyword == "$schema" {
		return false
	}
	if document == "" {
		return true
	}
	if base == nil {
		return false
	}
	u, err := base.Parse(document)
	return err == nil && s.known[u.String()]
}
