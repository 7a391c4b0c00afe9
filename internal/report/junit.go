package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// The XML of JUnit as Jenkins reads it, which other programs read, too: a test case for each object, and one for each file
// with findings without an object.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Time     string     `xml:"time,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Time       string          `xml:"time,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []*junitCase    `xml:"testcase"`
		Out        string          `xml:"system-out,omitempty"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name     string         `xml:"name,attr"`
		Time     string         `xml:"time,attr,omitempty"`
		Class    string         `xml:"classname,attr"`
		Skipped  *string        `xml:"skipped"`
		Errors   []junitProblem `xml:"error"`
		Failures []junitProblem `xml:"failure"`
		Out      []string       `xml:"system-out"`
	}
	junitProblem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

func writeJUnit(w io.Writer, run *Run) error {
	suite := junitSuite{
		Name:       "helmsrc " + run.Command,
		Time:       seconds(run.Duration),
		Timestamp:  run.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: []junitProperty{{"version", run.Version}},
		Cases:      junitCases(run),
		Out:        run.omission(),
	}
	for _, c := range suite.Cases {
		suite.Tests++
		switch {
		case len(c.Errors) > 0:
			suite.Errors++
		case len(c.Failures) > 0:
			suite.Failures++
		case c.Skipped != nil:
			suite.Skipped++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	all := junitSuites{
		Name: "helmsrc", Time: suite.Time, Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Suite: suite,
	}
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// junitCases returns the test cases: those of the objects in their order, with their findings, then those of files.
func junitCases(run *Run) []*junitCase {
	var cases []*junitCase
	known := map[[2]string]*junitCase{}
	caseOf := func(class, name string) *junitCase {
		key := [2]string{class, name}
		if known[key] == nil {
			known[key] = &junitCase{Name: name, Class: "helmsrc." + class}
			cases = append(cases, known[key])
		}
		return known[key]
	}
	for _, o := range run.Objects {
		caseOf(o.Kind, qualified(o.Namespace, o.Name)).Time = seconds(o.Duration)
	}
	for i := range run.Findings {
		f := &run.Findings[i]
		if f.Name == "" {
			caseOf("files", cmp.Or(f.Pos.File, "input")).add(f)
		} else {
			caseOf(f.Kind, qualified(f.Namespace, f.Name)).add(f)
		}
	}
	for _, o := range run.Objects {
		caseOf(o.Kind, qualified(o.Namespace, o.Name)).addState(o)
	}
	return cases
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// add records a finding. An error fails the test case; other findings are part of its output.
func (c *junitCase) add(f *finding.Finding) {
	text := f.Message + details(f)
	if position := f.Pos.String(); position != "" {
		text = position + ": " + text
	}
	if f.Line != "" {
		text += "\n" + f.Line
	}
	if f.Severity != finding.Error {
		c.Out = append(c.Out, fmt.Sprintf("%s %s: %s", f.Severity, f.Code, text))
		return
	}
	c.Failures = append(c.Failures, junitProblem{string(f.Code), f.Message, text})
}

// addState records the state of an object without a finding of its own: suspended, blocked, not finished, or failed without an
// error.
func (c *junitCase) addState(o Object) {
	switch {
	case o.State == StateSuspended:
		suspended := "suspended"
		c.Skipped = &suspended
	case o.State == StateBlocked:
		blocked := "blocked by " + o.BlockedBy.String()
		c.Skipped = &blocked
	case o.State == StateInterrupted:
		c.Errors = append(c.Errors, junitProblem{cmp.Or(o.Reason, "Interrupted"), cmp.Or(o.Message, "not finished"), ""})
	case o.State == StateFailed && len(c.Failures) == 0:
		c.Failures = append(c.Failures, junitProblem{o.Reason, o.Message, o.Pos.String()})
	}
}
