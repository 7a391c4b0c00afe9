package program

import (
	"bufio"
	"fmt"
	"io"
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

// The guides are typed unchanged. TestGuides runs the blocks of a page in one shell, in their order.
//
//   - A block "```sh" contains commands, all of which must succeed. Files are created with cat.
//   - A block "```console" is a dialogue: "$ COMMAND", then its whole output. A line of three dots matches any lines.
//   - Other blocks are not run.
//   - "<!-- needs PROGRAM -->" before a block names a program that is not part of these tests. Only the syntax of such a
//     block is checked, and that it calls the program.
//   - "<!-- world" begins a comment with an archive of files, as in the scripts: servers, and files that a reader has already.
//
// Servers have the names that the page gives them, on a network that only has loopback; most use TLS, with an authority
// of the system, which only Linux reads from a variable: on other systems the pages are not run.

var (
	worldComment = regexp.MustCompile(`(?s)<!-- world\n(.*?)-->`)
	typedBlock   = regexp.MustCompile("(?ms)^(?:<!-- needs ([a-z-]+) -->\n)?```(sh|console)\n(.*?)^```$")
	fencedName   = regexp.MustCompile("(?m)^```[a-z]+ .*$")

	longDigest = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)
)

// TestGuides runs the commands of the README and the pages of docs/guides. With -update it writes their output into the pages.
func TestGuides(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	pages, err := filepath.Glob("docs/guides/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no guides", err)
	}
	for _, page := range append(pages, "README.md") {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			text := string(b)
			if name := fencedName.FindString(text); name != "" {
				t.Errorf("%q: what stands behind the language is not shown to readers", name)
			}
			g := newGuide(t, text+readmeWorld(t, page))
			if page == "README.md" {
				if err := os.CopyFS(filepath.Join(g.dir, "examples"), os.DirFS("examples")); err != nil {
					t.Fatal(err)
				}
			}
			typed := typedBlock.ReplaceAllStringFunc(text, g.block)
			if *update && typed != text {
				if err := os.WriteFile(page, []byte(typed), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// readmeWorld returns the world of the README, which is too short for comments.
func readmeWorld(t *testing.T, page string) string {
	t.Helper()
	if page != "README.md" {
		return ""
	}
	b, err := os.ReadFile(filepath.Join("testdata", "readme.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return "<!-- world\n" + string(b) + "-->"
}

// guide is the reader of a page: a shell in a directory, on a network with the servers of the page.
type guide struct {
	stage
	env   []string // of all commands, besides that of the stage
	shell *guideShell
}

func newGuide(t *testing.T, page string) *guide {
	t.Helper()
	g := &guide{stage: stage{t: t, dir: t.TempDir()}}
	for _, m := range worldComment.FindAllStringSubmatch(page, -1) {
		for _, f := range txtar.Parse([]byte(m[1])).Files {
			g.write(f.Name, string(f.Data))
		}
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
	g.env = append(g.env, "SSL_CERT_FILE="+filepath.Join(g.dir, stateDir, "ca.crt"),
		"HELMSRC_CONCURRENCY=1", // requests in the same order each time
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=you", "GIT_AUTHOR_EMAIL=you@example.com",
		"GIT_COMMITTER_NAME=you", "GIT_COMMITTER_EMAIL=you@example.com")
	return g
}

// block runs a block, and returns it with the output of its commands.
func (g *guide) block(block string) string {
	g.t.Helper()
	m := typedBlock.FindStringSubmatch(block)
	needs, language, text := m[1], m[2], m[3]
	switch {
	case needs != "":
		check := exec.CommandContext(g.t.Context(), "sh", "-n")
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil || !strings.Contains(text, needs+" ") {
			g.t.Errorf("%s\nhas to be commands that call %s: %v\n%s", text, needs, err, out)
		}
		return block
	case language == "sh":
		if out, code := g.typed("set -e\n" + text + "set +e"); code != 0 {
			g.t.Fatalf("%s\nends with exit code %d:\n%s", text, code, out)
		}
		return block
	}
	return strings.Replace(block, text, g.dialogue(text), 1)
}

// dialogue runs the commands of a block and returns it with their output.
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

// answer returns the output of a command, on both streams, as the pages show it.
func (g *guide) answer(command string) string {
	g.t.Helper()
	out, _ := g.typed(command)
	return longDigest.ReplaceAllString(strings.ReplaceAll(filepath.ToSlash(out), "$WORK", "/home/you"), "$1…")
}

// typed runs commands in the shell, and returns their output and the exit code of the last one.
func (g *guide) typed(commands string) (out string, code int) {
	g.t.Helper()
	if g.shell == nil {
		g.shell = startShell(g)
	}
	out, code, err := g.shell.typed(commands)
	if err != nil {
		g.t.Fatalf("%s\nends the shell: %v\n%s", commands, err, out)
	}
	return out, code
}

// guideShell is a shell that reads commands one after the other, as in a terminal.
type guideShell struct {
	in  io.Writer
	out *bufio.Reader
}

// endOfOutput is a line that no command prints.
const endOfOutput = "--- end of output, exit code "

func startShell(g *guide) *guideShell {
	g.t.Helper()
	sh := exec.CommandContext(g.t.Context(), "sh")
	sh.Dir = g.dir
	sh.Env = append(g.command().Env, g.env...)
	in, err := sh.StdinPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		g.t.Fatal(err)
	}
	sh.Stdout, sh.Stderr = w, w
	if err := sh.Start(); err != nil {
		g.t.Fatal(err)
	}
	_ = w.Close()
	g.t.Cleanup(func() {
		_ = in.Close()
		_ = sh.Wait() // it may have failed, which was reported
		_ = out.Close()
	})
	return &guideShell{in: in, out: bufio.NewReader(out)}
}

// typed runs commands, and leaves $? as they did.
func (s *guideShell) typed(commands string) (out string, code int, err error) {
	_, err = fmt.Fprintf(s.in, "%s\n_code=$?; printf '\\n%s%%d\\n' \"$_code\"; (exit \"$_code\")\n", commands, endOfOutput)
	if err != nil {
		return "", 0, err
	}
	var all strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if text, ended := strings.CutPrefix(line, endOfOutput); ended {
			code, err := strconv.Atoi(strings.TrimSpace(text))
			return strings.TrimSuffix(all.String(), "\n"), code, err
		}
		all.WriteString(line)
		if err != nil {
			return all.String(), 0, err
		}
	}
}

// matches compares an output with that of a page, in which a line of three dots matches any lines.
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
