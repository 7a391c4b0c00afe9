package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/manifest"
)

// A Component is an entry of a bill of materials: a chart, an artifact, files or an image. Unknown fields are empty.
type Component struct {
	Kind     ComponentKind
	Name     string
	Version  string
	URL      string   // of its source
	Digest   string   // of its bytes
	Manifest string   // digest of its manifest in a registry
	Revision string   // of a Git repository or a bucket
	License  string   // as the chart states it
	Signers  []string // whose signatures were verified
	Found    []string // places that refer to it: objects, charts, rendered manifests
	Parts    []Component
}

// ComponentKind is the kind of a component.
type ComponentKind string

// The kinds of components.
const (
	ComponentChart    ComponentKind = "chart"
	ComponentArtifact ComponentKind = "artifact" // of a registry, of another kind
	ComponentFiles    ComponentKind = "files"    // of a Git repository or a bucket
	ComponentImage    ComponentKind = "image"    // of a container
)

// Map applies change to all texts of a component and its parts.
func (c *Component) Map(change func(string) string) {
	for _, text := range []*string{&c.Name, &c.Version, &c.URL, &c.Digest, &c.Manifest, &c.Revision, &c.License} {
		*text = change(*text)
	}
	for _, list := range [][]string{c.Signers, c.Found} {
		for i := range list {
			list[i] = change(list[i])
		}
	}
	for i := range c.Parts {
		c.Parts[i].Map(change)
	}
}

// materials are the components of a run, without duplicates.
type materials struct {
	found  map[string]*material // by ref
	list   []*material          // sorted by ref
	failed int                  // objects with unknown components
	id     string               // equal for equal materials, a UUID
}

type material struct {
	Component

	ref   string // a package URL, unique among the materials
	parts []string
	top   bool // of an object
}

// materials collects the components of all objects.
func (r *Run) materials() *materials {
	of := r.Count
	m := &materials{found: map[string]*material{}, failed: of[StateFailed] + of[StateBlocked] + of[StateSuspended] + of[StateInterrupted]}
	for i := range r.Objects {
		if c := r.Objects[i].Component; c != nil {
			m.found[m.add(c)].top = true
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(m.found)) {
		one := m.found[ref]
		for _, list := range []*[]string{&one.parts, &one.Found, &one.Signers} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		m.list = append(m.list, one)
	}
	text, _ := json.Marshal(m.list) // of texts
	sum := sha256.Sum256(text)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	m.id = fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return m
}

// add adds a component and its parts, and returns its package URL.
func (m *materials) add(c *Component) string {
	ref := c.packageURL()
	one := m.found[ref]
	if one == nil {
		one = &material{Component: *c, ref: ref}
		one.Parts, one.Found, one.Signers = nil, nil, nil
		m.found[ref] = one
	}
	one.License, one.Digest = cmp.Or(one.License, c.License), cmp.Or(one.Digest, c.Digest)
	one.Found, one.Signers = append(one.Found, c.Found...), append(one.Signers, c.Signers...)
	for i := range c.Parts {
		if part := m.add(&c.Parts[i]); part != ref {
			one.parts = append(one.parts, part)
		}
	}
	return ref
}

// packageURL returns the name of the component after the specification of package URLs.
func (c *Component) packageURL() string {
	switch {
	case c.Manifest != "" || c.Kind == ComponentImage || c.Kind == ComponentArtifact:
		repository, tag, _ := manifest.SplitReference(strings.TrimPrefix(c.URL, "oci://"))
		return packageURL("oci", path.Base(repository), c.Manifest, url.Values{"repository_url": {repository}, "tag": {cmp.Or(tag, c.Version)}})
	case c.Kind == ComponentFiles:
		return packageURL("generic", c.Name, c.Revision, url.Values{"vcs_url": {c.URL}})
	case len(c.Parts) > 0 && c.Parts[0].Kind == ComponentFiles:
		return packageURL("helm", c.Name, c.Version, url.Values{"checksum": {c.Digest}, "vcs_url": {c.Parts[0].URL + "@" + c.Parts[0].Revision}})
	}
	return packageURL("helm", c.Name, c.Version, url.Values{"checksum": {c.Digest}, "download_url": {c.URL}})
}

// packageURL joins a package URL, without empty qualifiers. Colons and slashes are not escaped in package URLs.
func packageURL(kind, name, version string, qualifiers url.Values) string {
	text := "pkg:" + kind + "/" + url.QueryEscape(name)
	if version != "" {
		text += "@" + url.QueryEscape(version)
	}
	maps.DeleteFunc(qualifiers, func(_ string, values []string) bool { return values[0] == "" })
	if len(qualifiers) > 0 {
		text += "?" + qualifiers.Encode()
	}
	return strings.NewReplacer("+", "%20", "%3A", ":", "%2F", "/").Replace(text)
}

// uri returns the URL, or "" without a scheme and a host: references to images have no scheme.
func (c *Component) uri() string {
	if u, err := url.Parse(c.URL); err != nil || u.Scheme == "" || u.Host == "" {
		return ""
	}
	return c.URL
}

// digest returns the algorithm, such as sha256, and the digest of a component, both "" if it has no digest.
func (c *Component) digest() (algorithm, encoded string) {
	algorithm, encoded, _ = strings.Cut(cmp.Or(c.Digest, c.Manifest), ":")
	return algorithm, encoded
}

var expressions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\(*[A-Za-z0-9.-]+\+?\)*( (AND|OR|WITH) \(*[A-Za-z0-9.-]+\+?\)*)*$`)
})

// expression returns the license as an SPDX expression, or "" if it is not one.
func (c *Component) expression() string {
	if !expressions().MatchString(c.License) || strings.Count(c.License, "(") != strings.Count(c.License, ")") {
		return ""
	}
	return c.License
}
