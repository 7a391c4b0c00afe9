package records

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/table"
)

type record struct {
	Cluster string `json:"cluster,omitempty"`
	Name    string `json:"name"`
	Kind    string `json:"kind"`
}

func columns() *Columns[record] {
	return &Columns[record]{
		Header: []string{"NAME"}, Wide: []string{"KIND"},
		Cluster: func(r record) string { return r.Cluster },
		Row:     func(r record) []string { return []string{r.Name, r.Kind} },
	}
}

func printed(t *testing.T, format string, list ...record) string {
	t.Helper()
	var b bytes.Buffer
	if err := columns().Print(&b, format, table.Style{}, list); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNothing prints an empty list in each format: an empty list for programs, an empty text for people.
func TestNothing(t *testing.T) {
	for format, want := range map[string]string{
		"table": "", "wide": "", "markdown": "", "jsonl": "", "yaml": "[]\n",
		"json": "{\n  \"apiVersion\": \"v1\",\n  \"items\": [],\n  \"kind\": \"List\"\n}\n",
	} {
		if got := printed(t, format); got != want {
			t.Errorf("%s of nothing is %q, want %q", format, got, want)
		}
	}
}

// TestColumns has a column for clusters where there are several, and further columns where the table is wide.
func TestColumns(t *testing.T) {
	alone, other := record{"", "a", "X"}, record{"east", "b", "Y"}
	for _, test := range []struct {
		format string
		list   []record
		want   string
	}{
		{"table", []record{alone}, "NAME"},
		{"wide", []record{alone}, "NAME KIND"},
		{"table", []record{alone, other}, "CLUSTER NAME"},
		{"wide", []record{other}, "CLUSTER NAME KIND"},
		{"markdown", []record{other}, "| CLUSTER | NAME | KIND |"},
	} {
		head, rest, _ := strings.Cut(printed(t, test.format, test.list...), "\n")
		if got := strings.Join(strings.Fields(head), " "); got != test.want {
			t.Errorf("%s of %v has columns %q, want %q", test.format, test.list, got, test.want)
		}
		for _, r := range test.list {
			if !strings.Contains(rest, r.Name) {
				t.Errorf("%s of %v has no row of %s:\n%s", test.format, test.list, r.Name, rest)
			}
		}
	}
}

// TestLines reads jsonl back line by line.
func TestLines(t *testing.T) {
	want := []record{{"", "<a>", "X"}, {"east", "b\nc", "Y"}}
	lines := strings.Split(strings.TrimSuffix(printed(t, "jsonl", want...), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i, line := range lines {
		var got record
		if err := json.Unmarshal([]byte(line), &got); err != nil || got != want[i] {
			t.Errorf("line %d is %s: %v", i+1, line, err)
		}
	}
}

// TestTemplates applies templates to the document that json prints, and refuses an invalid template.
func TestTemplates(t *testing.T) {
	if got := printed(t, "jsonpath={.items[*].name}", record{"", "a", ""}, record{"", "b", ""}); got != "a b" {
		t.Errorf("names are %q", got)
	}
	if err := columns().Print(&bytes.Buffer{}, "go-template={{.items", table.Style{}, nil); err == nil {
		t.Error("an invalid template is accepted")
	}
}
