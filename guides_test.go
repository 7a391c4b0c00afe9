package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
)

// The guides show commands with what they print. TestGuides runs them:
//
//   - "<!-- world" begins a comment with an archive of files, as in the scripts: servers, and what a reader would have.
//   - A block "```yaml file=NAME" is a file.
//   - A block "```console" is a dialogue: "$ helmsrc …", then all that it prints; "$ echo $?" prints the exit code. A line
//     of three dots stands for any lines. Commands that are no dialogue are in blocks of other languages.
//
// The servers of charts.example.com speak TLS in the guides, and HTTP here. Other servers have TLS where their directory
// asks for it, and their authority is one of the system, which only Linux reads from a variable: elsewhere such a page is
// not run.

var (
	worldComment  = regexp.MustCompile(`(?s)<!-- world\n(.*?)-->`)
	fileBlock     = regexp.MustCompile("(?ms)^```[a-z]+ file=(\\S+)\n(.*?)^```$")
	dialogueBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
	quoted        = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

	// guideNames are names in the guides, and here. They are of equal length: there are tables.
	guideNames = []string{"https://charts.example.com", "http://charts.example.test"}

	longDigest = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)
)

// TestGuides runs every dialogue of docs/guides. With -update it writes down what the commands print.
func TestGuides(t *testing.T) {
	pages, err := filepath.Glob("docs/guides/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no guides", err)
	}
	for _, page := range pages {
		if runtime.GOOS != "linux" && needsAuthority(t, page) {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			g := newGuide(t, string(b))
			text := dialogueBlock.ReplaceAllStringFunc(string(b), func(block string) string {
				return "```console\n" + g.dialogue(dialogueBlock.FindStringSubmatch(block)[1]) + "```"
			})
			if *update && text != string(b) {
				if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// guide is the reader of a page: a directory with its files, on a network with its servers.
type guide struct {
	stage
	code int      // of the last command
	env  []string // of all commands
	here *strings.Replacer
	back *strings.Replacer
}

func newGuide(t *testing.T, page string) *guide {
	t.Helper()
	reverse := []string{"$WORK", "/home/you"}
	for i := 0; i < len(guideNames); i += 2 {
		reverse = append(reverse, guideNames[i+1], guideNames[i])
	}
	g := &guide{stage: stage{t: t, dir: t.TempDir()}, here: strings.NewReplacer(guideNames...), back: strings.NewReplacer(reverse...)}
	for _, m := range worldComment.FindAllStringSubmatch(page, -1) {
		for _, f := range txtar.Parse([]byte(m[1])).Files {
			g.write(f.Name, string(f.Data))
		}
	}
	for _, m := range fileBlock.FindAllStringSubmatch(page, -1) {
		g.write(m[1], g.here.Replace(m[2]))
	}
	k, err := kit()
	if err != nil {
		t.Fatal(err)
	}
	w := helmtest.NewWorld(k)
	t.Cleanup(w.Close)
	w.Kinds["registry"] = registry.KindWith(registry.Hooks{Change: signArchives, Add: signIn(w)})
	w.Kinds["repo"] = signedRepository(w.Kinds["repo"])
	if err := writeSigning(g.dir); err != nil {
		t.Fatal(err)
	}
	if err := startServers(&testscript.Env{WorkDir: g.dir}, w); err != nil {
		t.Fatal(err)
	}
	g.write(stateDir+"/network", w.Network.String())
	g.write(stateDir+"/ca.crt", string(k.CA.Cert))
	g.env = append(g.env, "SSL_CERT_FILE="+filepath.Join(g.dir, stateDir, "ca.crt"))
	return g
}

// needsAuthority reports whether a server of a page has TLS.
func needsAuthority(t *testing.T, page string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^-- _\S+/tls --$`).Match(text)
}

// dialogue runs the commands of a block and returns it with what they print.
func (g *guide) dialogue(block string) string {
	g.t.Helper()
	var all strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
		command, want, _ := strings.Cut(part, "\n")
		if want != "" {
			want = strings.TrimSuffix(want, "\n") + "\n"
		}
		got := g.answer(command)
		switch {
		case matches(want, got):
			got = want
		case !*update:
			g.t.Errorf("$ %s\n%s\nthe guide says\n%s", command, got, want)
		}
		all.WriteString("$ " + command + "\n" + got)
	}
	return all.String()
}

// answer is what a command prints, on both streams, as the pages show it.
func (g *guide) answer(command string) string {
	g.t.Helper()
	if command == "echo $?" {
		return strconv.Itoa(g.code) + "\n"
	}
	words := quoted.FindAllString(g.here.Replace(command), -1)
	for i, word := range words {
		words[i] = strings.Trim(word, `'"`)
	}
	if words[0] != "helmsrc" {
		g.t.Fatalf("a dialogue with %s: only helmsrc is run", words[0])
	}
	cmd := g.command(words[1:]...)
	cmd.Env = append(append(cmd.Env, "HELMSRC_CONCURRENCY=1"), g.env...) // one after the other is the same each time
	out, err := cmd.CombinedOutput()
	g.code = 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		g.code = exit.ExitCode()
	} else if err != nil {
		g.t.Fatal(err)
	}
	return longDigest.ReplaceAllString(g.back.Replace(filepath.ToSlash(string(out))), "$1…")
}

// matches compares what is printed with what a page says, where a line of three dots stands for any lines.
func matches(want, got string) bool {
	pattern := regexp.QuoteMeta(want)
	pattern = strings.ReplaceAll(pattern, regexp.QuoteMeta("...\n"), `(?:.*\n)*`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(got)
}

var link = regexp.MustCompile(`\]\(([^)#: ]+)(?:#[^)]*)?\)`)

// TestLinks follows the links between the pages of this repository.
func TestLinks(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}
