package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestJUnitSchema validates the reports with Jenkins' schema: with the parser of schemas below, which is available everywhere,
// and with xmllint if it is installed, as in CI.
func TestJUnitSchema(t *testing.T) {
	schema := readXSD(t, filepath.Join("testdata", "junit.xsd"))
	lint, _ := exec.LookPath("xmllint")
	for name, run := range runs() {
		text := written(t, "junit", run)
		if err := schema.validate(text); err != nil {
			t.Errorf("%s: %v\n%.2000s", name, err, text)
		}
		if lint == "" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), lint, "--noout", "--nonet", "--schema", filepath.Join("testdata", "junit.xsd"), "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: xmllint: %v\n%s", name, err, out)
		}
	}
	for _, wrong := range []string{
		`<testsuites><testsuite name="a"></testsuite></testsuites>`,
		`<testsuites><testsuite name="a" tests="0" colour="red"></testsuite></testsuites>`,
		`<testsuites><testcase name="a"></testcase></testsuites>`,
		`<testsuites><testsuite name="a" tests="1"><testcase name="b"><failure/><skipped/></testcase></testsuite></testsuites>`,
		`<testsuites><testsuite name="a" tests="1"><properties/></testsuite></testsuites>`,
		`<testsuites><testsuite name="a" tests="1">text</testsuite></testsuites>`,
		`<report/>`,
		`<testsuites>`,
	} {
		if schema.validate(wrong) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}

// xsd is the part of XML Schema that junit.xsd uses; readXSD refuses other elements.
type xsd map[string]xsdElement

type xsdElement struct {
	Name   string `xml:"name,attr"`
	Type   string `xml:"type,attr"`
	Ref    string `xml:"ref,attr"`
	Min    string `xml:"minOccurs,attr"`
	Max    string `xml:"maxOccurs,attr"`
	Struct *struct {
		Mixed      bool         `xml:"mixed,attr"`
		Elements   []xsdElement `xml:"sequence>element"`
		Attributes []struct {
			Name string `xml:"name,attr"`
			Use  string `xml:"use,attr"`
			Type string `xml:"type,attr"`
		} `xml:"attribute"`
	} `xml:"complexType"`
}

func readXSD(t *testing.T, path string) xsd {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(string(b)))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		known := []string{"schema", "element", "complexType", "sequence", "attribute"}
		if e, ok := token.(xml.StartElement); ok && !slices.Contains(known, e.Name.Local) {
			t.Fatalf("%s uses %s, which is not understood here", path, e.Name.Local)
		}
	}
	var file struct {
		Elements []xsdElement `xml:"element"`
	}
	if err := xml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	schema := xsd{}
	for _, e := range file.Elements {
		schema[e.Name] = e
	}
	return schema
}

type xmlNode struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []xmlNode  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (x xsd) validate(text string) error {
	var root xmlNode
	if err := xml.Unmarshal([]byte(text), &root); err != nil {
		return err
	}
	return x.element(root)
}

func (x xsd) element(n xmlNode) error {
	name := n.XMLName.Local
	e, ok := x[name]
	switch {
	case !ok:
		return fmt.Errorf("no element %s", name)
	case e.Struct == nil: // a string
		if len(n.Children)+len(n.Attrs) > 0 {
			return fmt.Errorf("%s holds more than text", name)
		}
		return nil
	case !e.Struct.Mixed && strings.TrimSpace(n.Text) != "":
		return fmt.Errorf("text in %s", name)
	}
	given := map[string]bool{}
	for _, a := range n.Attrs {
		given[a.Name.Local] = true
	}
	for _, a := range e.Struct.Attributes {
		if a.Use == "required" && !given[a.Name] {
			return fmt.Errorf("%s without %s", name, a.Name)
		}
		delete(given, a.Name)
	}
	if len(given) > 0 {
		return fmt.Errorf("%s has unknown attributes %v", name, given)
	}
	return x.sequence(name, e.Struct.Elements, n.Children)
}

// sequence checks the order of the children.
func (x xsd) sequence(name string, elements []xsdElement, children []xmlNode) error {
	for _, e := range elements {
		n := 0
		for n < len(children) && children[n].XMLName.Local == e.Ref {
			if err := x.element(children[n]); err != nil {
				return err
			}
			n++
		}
		if n < occurs(e.Min, 1) || e.Max != "unbounded" && n > occurs(e.Max, 1) {
			return fmt.Errorf("%s has %d %s", name, n, e.Ref)
		}
		children = children[n:]
	}
	if len(children) > 0 {
		return fmt.Errorf("%s in %s is in the wrong place", children[0].XMLName.Local, name)
	}
	return nil
}

func occurs(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}
