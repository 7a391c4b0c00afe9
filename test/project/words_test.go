package project

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

// plainWords are words that read as translated, with replacements. The test searches pages, messages and help for them: quoted
// text, but not comments and names.
var plainWords = []struct{ pattern, instead string }{
	{`\bmend(s|ed|ing)?\b`, "fix"},
	{`\btold\b`, "reported, said"},
	{`\bhardly\b`, "rarely"},
	{`\bat hand\b`, "available"},
	{`\bremembered\b`, "recorded"},
	{`\bwhoever\b`, "anyone who"},
	{`\bsomebody\b`, "a person, a user"},
	{`\banybody\b`, "anyone"},
	{`\bthat there is not\b`, "that does not exist"},
	{`\bnothing worse\b`, "only"},
	{`\bwhat comes then\b`, "the rest"},
	{`\bevery wait an end\b`, "waiting is bounded"},
	{`\bodd\s`, "unusual"},
	{`\btwins?\b`, "environment variable, copy"},
	{`\banew\b`, "again"},
	{`\b(?:is|are) asked for\b`, "is requested"},
	{`\bvouch(es)?\b`, "sign, confirm"},
	{`\bbe had\b`, "cannot be fetched"},
	{`\b(?:is|are|not) believed\b`, "trusted"},
	{`\bfor the right one\b`, "what is not verified"},
	{`\bround in a circle\b`, "cycle"},
	{`\bexclude each other\b`, "are mutually exclusive"},
	{`\btakes? no part\b`, "is missing from"},
	{`\brefers? with spec\b`, "name in spec"},
}

// commentWords matches such words in comments.
var commentWords = regexp.MustCompile(`(?i)\banew\b|\bbut for\b|\bwithout a word\b|\bin the place of\b|\bin its stead\b|\bthereby\b|\bbe had\b|\bheld against\b|\bno one asked\b`)

var (
	quotedText  = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")
	lineComment = regexp.MustCompile(`(?m)//.*$`)
	goComment   = regexp.MustCompile(`(?m)^\s*//.*$`)
)

// TestPlainWords: pages and messages use the words of the manuals of Go, Flux and Helm.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "ls-files", "-z", "--", "*.md", "cmd/*.go", "internal/*.go", ":!*_test.go", ":!internal/helmtest").Output()
	if err != nil {
		t.Fatal(err)
	}
	patterns := make([]string, 0, len(plainWords))
	for _, w := range plainWords {
		patterns = append(patterns, "("+w.pattern+")")
	}
	all := regexp.MustCompile("(?i)" + strings.Join(patterns, "|"))
	read := 0
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		read++
		texts := []string{string(b)}
		if strings.HasSuffix(name, ".go") {
			for _, found := range commentWords.FindAllString(strings.Join(lineComment.FindAllString(string(b), -1), "\n"), -1) {
				t.Errorf("%s: a comment has %q: write again, except, instead of, silently, or compared with", name, strings.TrimSpace(found))
			}
			texts = quotedText.FindAllString(goComment.ReplaceAllString(string(b), ""), -1)
		}
		for _, text := range texts {
			for _, found := range all.FindAllString(text, -1) {
				for _, w := range plainWords {
					if regexp.MustCompile("(?i)^(?:" + w.pattern + ")$").MatchString(found) {
						t.Errorf("%s: %q: write %s", name, found, w.instead)
					}
				}
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d files were read", read)
	}
}

// maxVague is the largest part of a package's comment lines, in percent, that may have one of the vagueWords. Some are in place, in
// a question for example.
const maxVague = 10

var vagueWords = regexp.MustCompile(`(?i)\b(?:what|none|one that|those that|others|says)\b`)

// TestSubjects counts comment lines in which a pronoun may be where the reader looks for a noun of the field: the index, the chart,
// the answer.
func TestSubjects(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "ls-files", "-z", "--", "*.go", ":!tools", ":!.ci", ":!test").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines, vague := map[string]int{}, map[string]int{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, comment := range goComment.FindAllString(string(b), -1) {
			lines[path.Dir(name)]++
			if vagueWords.MatchString(comment) {
				vague[path.Dir(name)]++
			}
		}
	}
	if len(lines) < 50 {
		t.Errorf("only %d packages were read", len(lines))
	}
	for dir, n := range vague {
		if n > 1 && n*100 > lines[dir]*maxVague {
			t.Errorf("%s: %d of %d comment lines have one of %v: name the subject", dir, n, lines[dir], vagueWords)
		}
	}
}
