package finding

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/helmsrc/helmsrc/docs"
)

// Rule describes a kind of mistake. Its names in JSON are part of the contract of explain.
type Rule struct {
	Code     Code     `json:"code"`
	Name     string   `json:"name"`  // a word or several with dashes
	Group    string   `json:"group"` // its heading in the catalogue
	Severity Severity `json:"severity"`
	Summary  string   `json:"summary"` // one sentence, without a full stop
	// Explanation describes the effect of the mistake.
	Explanation string `json:"explanation"`
	Fix         string `json:"fix"`               // advice, in general
	Example     string `json:"example,omitempty"` // manifests with the mistake; empty for rules that apply only to a fetch
	Better      string `json:"better,omitempty"`  // the same without the mistake
	// Remedy is the only fix, nil if there are several, or if a program cannot know it.
	Remedy *Remedy `json:"-"`
	// Silenceable reports whether a comment can silence a finding. It is false if the object cannot be used at all, and for
	// failures of a run.
	Silenceable bool `json:"silenceable"`
}

// Rules returns all rules, sorted by code. The catalogue is read on first use, because most runs do not need it.
func Rules() []Rule { return slices.Clone(rules()) }

var rules = sync.OnceValue(func() []Rule { return readRules(strings.ReplaceAll(docs.Findings, "\r\n", "\n")) })

// lasting ends the fix of a rule that no comment can silence.
const lasting = " It cannot be silenced."

// readRules parses the catalogue, a page in Markdown. TestPage checks that it has this form, and no other content.
func readRules(page string) []Rule {
	var all []Rule
	for _, section := range strings.Split(page, "\n## ")[2:] { // the first two introduce the page
		group, section, _ := strings.Cut(section, "\n")
		parts := strings.Split(section, "\n### ")
		rows := strings.Split(strings.TrimSpace(parts[0]), "\n")[2:]
		for i, text := range parts[1:] {
			row := strings.SplitN(strings.TrimSuffix(rows[i], " |"), " | ", 3)
			all = append(all, readRule(Rule{Group: group, Severity: Severity(row[1]), Summary: row[2]}, text))
		}
	}
	slices.SortFunc(all, func(a, b Rule) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

// readRule parses the part of a rule: its title, a paragraph that explains it, a paragraph with the fix, and two examples.
func readRule(r Rule, text string) Rule {
	text, examples, _ := strings.Cut(text, "\n```yaml\n")
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	code, name, _ := strings.Cut(paragraphs[0], " ")
	r.Code, r.Name, r.Remedy = Code(code), name, remedies()[Code(code)]
	r.Explanation = strings.TrimPrefix(paragraphs[1], r.Summary+". ")
	r.Fix = strings.TrimSuffix(paragraphs[2], lasting)
	r.Silenceable = r.Fix == paragraphs[2]
	if example, better, ok := strings.Cut(examples, "```\n\nBetter:\n\n```yaml\n"); ok {
		r.Example, r.Better = example, strings.TrimSuffix(strings.TrimRight(better, "\n"), "```")
	}
	return r
}

// byCode indexes the rules, on first use.
var byCode = sync.OnceValue(func() map[Code]Rule {
	byCode := map[Code]Rule{}
	for _, r := range rules() {
		byCode[r.Code] = r
	}
	return byCode
})

// Lookup returns the rule with a code, also if another code replaced it.
func Lookup(code string) (Rule, bool) {
	r, ok := byCode()[current(Code(code))]
	return r, ok
}

// Remedy describes the edit of a manifest that fixes a mistake. One of Replace, Quote and Insert is set, unless the new value
// depends on the version of Flux.
type Remedy struct {
	Keys    []string                  // the path of the value
	Replace func(value string) string // returns the new value, or the same if it has no fix
	Quote   bool                      // the value needs quotes
	Insert  [2]string                 // a key and its value, behind Keys
}

func remedies() map[Code]*Remedy {
	return map[Code]*Remedy{
		WrongType:          {Keys: []string{"version", "tag", "semver", "chart", "name"}, Quote: true},
		DeprecatedVersion:  {Keys: []string{"apiVersion"}},
		DeprecatedSpelling: {Keys: []string{"type"}, Replace: strings.ToLower},
		RemovedVersion:     {Keys: []string{"apiVersion"}},
		OCIWithoutType:     {Keys: []string{"url"}, Insert: [2]string{"type", "oci"}},
		ChartInURL: {Keys: []string{"url"}, Replace: func(url string) string {
			url = strings.TrimRight(url, "/")
			return url[:max(strings.LastIndexByte(url, '/'), 0)]
		}},
		IndexInURL: {Keys: []string{"url"}, Replace: func(url string) string { return strings.TrimSuffix(url, "/index.yaml") }},
	}
}

// RemedyKeys returns the keys of all remedies.
func RemedyKeys() []string {
	var keys []string
	for _, rule := range rules() {
		if rule.Remedy != nil {
			keys = append(keys, rule.Remedy.Keys...)
		}
	}
	return keys
}
