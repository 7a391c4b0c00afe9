package cmd

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/internal/report"
)

// component is the chart of a release that was rendered, with the images of its manifests, if a bill of materials is wanted.
func (t *templating) component(r *foreseen, manifests []byte) (*report.Component, error) {
	if !t.o.run.report.bills() || r.fact.Chart == nil {
		return nil, nil
	}
	c := report.Component{Kind: report.ComponentChart, Name: r.fact.Chart.Name, URL: r.url, Digest: r.fact.Chart.Digest}
	if strings.HasPrefix(r.url, "oci://") {
		c.Manifest, c.Digest = c.Digest, ""
	}
	b := &bill{app: t.app, images: t.o.run.named, st: r.st}
	b.look(&c, r.artifact)
	if c.Version == "" {
		c.Version = r.fact.Chart.Version
	}
	release := t.app.foundIn(r.in.Cluster, r.obj.String())
	c.Found = []string{release}
	var err error
	if t.o.run.named {
		var images []report.Component
		images, err = renderedImages(manifests, release)
		c.Parts = append(c.Parts, images...)
	}
	c.Map(func(text string) string { return t.app.console.Secrets().Text(r.obj.ConcealText(text)) })
	return &c, err
}

// renderedImages are the images that fields of rendered objects name.
func renderedImages(manifests []byte, release string) ([]report.Component, error) {
	objects, err := renderedObjects(manifests)
	if err != nil {
		return nil, err
	}
	var images []report.Component
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		switch objects[name]["kind"] {
		case "ConfigMap", "Secret", "CustomResourceDefinition":
			continue
		}
		eachImage(objects[name], "", func(field, reference string) {
			images = append(images, imageComponent(reference, name+" "+field+" of "+release))
		})
	}
	return images, nil
}

var imageReference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._:-]*(/[a-z0-9._-]+)*(:[\w][\w.-]*)?(@sha(256|512):[0-9a-f]+)?$`)
})

// eachImage visits the fields called image that hold a reference, and those of image volumes.
func eachImage(value any, field string, visit func(field, reference string)) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			eachImage(item, fmt.Sprintf("%s[%d]", field, i), visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(field+"."+key, ".")
			text, ok := v[key].(string)
			if ok && (key == "image" || key == "reference" && strings.HasSuffix(field, ".image")) && imageReference().MatchString(text) {
				visit(at, text)
				continue
			}
			eachImage(v[key], at, visit)
		}
	}
}
