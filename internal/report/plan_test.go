package report

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/helmsrc/helmsrc/internal/plan"
)

// hostilePlan returns a plan with hostile texts.
func hostilePlan() *plan.Plan {
	target := &plan.Target{Name: "app", Namespace: "apps", StorageNamespace: "apps"}
	digest := "sha256:" + strings.Repeat("a", 64)
	return &plan.Plan{Against: "main", Changes: []plan.Change{
		{ID: plan.ID{Namespace: "apps", Name: "same"}, Action: plan.None, Reasons: []plan.Reason{{Code: plan.ReasonUnchanged, Text: "unchanged"}}, Release: target},
		{
			ID: plan.ID{Cluster: "a", Namespace: "apps", Name: "app"}, Action: plan.Upgrade, Release: target, Replaces: target, Chart: "app 1.x",
			Before: &plan.Chart{Name: "app", Version: "1.0.0"}, After: &plan.Chart{Name: "app", Version: "1.1.0", Digest: digest, Source: "HelmRepository/apps/repo"},
			ValuesBefore: digest, ValuesAfter: digest,
			Reasons: []plan.Reason{{Code: plan.ReasonValues, Text: hostile + " @everyone <img src=x> | # ", Fields: []plan.Field{{Path: "a.b", Change: "added", Secret: true}}, Omitted: 3}},
			Diffs:   []plan.Diff{{Of: "values", Text: "+a: ```\n+</details>\x1b[31m\n"}},
		},
	}}
}

func TestPlanSchema(t *testing.T) {
	s := compile(t, filepath.Join("..", "..", "schema", "plan.schema.json"))
	for name, p := range map[string]*plan.Plan{"empty": {Against: "main"}, "hostile": hostilePlan()} {
		var text bytes.Buffer
		if err := WritePlan(&text, p); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wrong, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(text.String(), `"against"`, `"agianst"`, 1)))
		if err != nil || s.Validate(wrong) == nil {
			t.Errorf("%s: the schema accepts a mistake (%v)", name, err)
		}
	}
}

// TestPlanMarkdown: hostile text adds no markup, and the size of a page is bounded.
func TestPlanMarkdown(t *testing.T) {
	page := PlanMarkdown(hostilePlan())
	if !strings.HasPrefix(page, PlanMark+"\n") {
		t.Errorf("the mark is missing: %.100q", page)
	}
	for _, unwanted := range []string{"<img", " @everyone", "\x1b", "apps/same"} {
		if strings.Contains(page, unwanted) {
			t.Errorf("it holds %q:\n%s", unwanted, page)
		}
	}
	if !strings.Contains(page, "\n````diff\n+a: ```\n") {
		t.Errorf("a diff ends its fence:\n%s", page)
	}
	long := hostilePlan()
	for range 2000 {
		long.Changes = append(long.Changes, long.Changes[1])
	}
	long.Changes[1].Diffs = []plan.Diff{{Of: "chart", Text: strings.Repeat("+x\n", maxComment)}}
	page = PlanMarkdown(long)
	if len(page) > maxComment || !strings.Contains(page, "more\n") {
		t.Errorf("a page of %d bytes does not count what is left out", len(page))
	}
}

// TestDiffFence: a diff does not close its fence, also if dropped control characters divide the backquotes in it.
func TestDiffFence(t *testing.T) {
	for _, text := range []string{" a\n ```\n b\n", " a\n ``\x01`\n b\n", " a\n `\x1b``\x7f`\n b\n"} {
		page := planDiff(&plan.Change{ID: plan.ID{Name: "a"}}, &plan.Diff{Of: "values", Text: text})
		_, diff, _ := strings.Cut(page, "</summary>\n\n")
		opening, inside, _ := strings.Cut(diff, "diff\n")
		if strings.Contains(strings.Split(inside, "\n</details>")[0], opening+"`") || strings.Count(inside, "\n"+opening) != 1 || strings.Contains(inside, " "+opening+"\n") {
			t.Errorf("%q:\n%s", text, page)
		}
	}
}
