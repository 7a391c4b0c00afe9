package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// AnnotationsPerStep is the number of annotations of one type that GitHub keeps for a step.
const AnnotationsPerStep = 10

func writeGitHub(w io.Writer, run *Run) error {
	_, err := Annotations(w, run, math.MaxInt)
	return err
}

// Annotations writes findings as workflow commands, up to most of each type, and returns how many it left out.
func Annotations(w io.Writer, run *Run, most int) (left int, err error) {
	run = run.bounded()
	written := map[finding.Severity]int{}
	left = run.omitted
	for i := range run.Findings {
		f := &run.Findings[i]
		if written[f.Severity] >= most {
			left++
			continue
		}
		written[f.Severity]++
		if _, err := io.WriteString(w, annotation(f)); err != nil {
			return left, err
		}
	}
	return left, nil
}

// annotation returns the workflow command for a finding. Text of manifests and servers is escaped, so that it cannot begin
// another command, or another property of this one.
func annotation(f *finding.Finding) string {
	kind := cmp.Or(map[finding.Severity]string{finding.Warning: "warning", finding.Note: "notice"}[f.Severity], "error")
	var properties []string
	property := func(name, value string) {
		properties = append(properties, name+"="+escapeProperty(value))
	}
	if f.Pos.File != "" {
		property("file", f.Pos.File)
		if f.Pos.Line > 0 {
			property("line", fmt.Sprint(f.Pos.Line))
			property("endLine", fmt.Sprint(f.Pos.Line))
		}
		if f.Pos.Column > 0 {
			property("col", fmt.Sprint(f.Pos.Column))
		}
		if end := endColumn(f); end > 0 {
			property("endColumn", fmt.Sprint(end))
		}
	}
	title := cmp.Or(string(f.Code), "helmsrc")
	property("title", strings.TrimSpace(title+" "+ruleName(f.Code)))
	text := headline(f) + details(f)
	return "::" + kind + " " + strings.Join(properties, ",") + "::" + escapeData(text) + "\n"
}

// escapeData escapes a message. The old form of a command, ##[name]value, counts anywhere in a line, so it is broken up.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", "##[", "## [").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(s))
}
