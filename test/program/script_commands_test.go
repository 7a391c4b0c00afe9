package program

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// scriptCommands are the commands that the README of testdata/script explains.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"archive":    cmdArchive,
	"await":      cmdAwait,
	"canary":     cmdCanary,
	"seal":       cmdSeal,
	"conditions": cmdConditions,
	"damage":     cmdDamage,
	"digest":     cmdDigest,
	"digests":    cmdDigests,
	"exits":      cmdExits,
	"helm":       cmdHelm,
	"kstatus":    cmdKstatus,
	"package":    cmdPackage,
	"repo":       cmdRepo,
	"requests":   cmdRequests,
	"serve":      cmdServe,
	"up":         cmdUp,
	"down":       cmdDown,
	"tree":       cmdTree,
}

// scene is the state of a script that its commands share.
type scene struct {
	world    *helmtest.World
	work     string
	canaries []helmtest.Canary
	given    map[string][32]byte // the files of the script
}

type sceneKey struct{}

func theScene(ts *testscript.TestScript) *scene { return ts.Value(sceneKey{}).(*scene) }

func usage(ts *testscript.TestScript, ok bool, text string) {
	if !ok {
		ts.Fatalf("usage: %s", text)
	}
}

// server returns a server by its name.
func (s *scene) server(ts *testscript.TestScript, name string) *helmtest.Server {
	server, ok := s.world.Servers[name]
	if !ok {
		ts.Fatalf("no server %s", name)
	}
	return server
}

// cmdExits checks the exit code of the last helmsrc.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "exits code")
	got := ts.ReadFile(filepath.Join(theScene(ts).work, stateDir, "exit"))
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// cmdRequests prints the requests that a server got since the last time.
func cmdRequests(ts *testscript.TestScript, neg bool, args []string) {
	sorted := len(args) == 2 && args[0] == "-sort"
	usage(ts, !neg && (len(args) == 1 || sorted), "requests [-sort] server")
	out := ts.Stdout()
	lines := helmtest.Strings(theScene(ts).server(ts, args[len(args)-1]).Log.Drain())
	if sorted {
		slices.Sort(lines)
	}
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}

// cmdAwait waits for a request, or for a number of requests, so that a program in the background is in a known state.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && (len(args) == 2 || len(args) == 3), "await server count | await server method uri")
	log := theScene(ts).server(ts, args[0]).Log
	if len(args) == 3 {
		log.Await(args[1], args[2])
		return
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	log.AwaitCount(n)
}

// cmdServe replaces the content of a server.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "serve server dir")
	ts.Check(theScene(ts).world.Replace(args[0], ts.MkAbs(args[1])))
}

func cmdDown(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "down server")
	theScene(ts).server(ts, args[0]).Close()
}

func cmdUp(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "up server")
	ts.Check(theScene(ts).server(ts, args[0]).Restart())
}

// cmdCanary declares a secret and the servers that may see it.
func cmdCanary(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) > 0, "canary secret [server...]")
	s := theScene(ts)
	c := helmtest.Canary{Value: args[0]}
	for _, name := range args[1:] {
		c.Addrs = append(c.Addrs, s.server(ts, name).Addr)
	}
	s.canaries = append(s.canaries, c)
}

// begin records the files of the script, so that search need not read them.
func (s *scene) begin() error {
	s.given = map[string][32]byte{}
	return s.files(func(name string, content []byte) { s.given[name] = sha256.Sum256(content) })
}

// search fails the test if a canary is in a file that the script made, including the output of helmsrc, or reached a server
// that must not get it.
func (s *scene) search(t testing.TB) {
	canaries := s.world.Canaries()
	for _, c := range s.canaries {
		if i := slices.IndexFunc(canaries, func(o helmtest.Canary) bool { return o.Value == c.Value }); i >= 0 {
			canaries[i].Addrs = append(slices.Clone(canaries[i].Addrs), c.Addrs...)
			continue
		}
		canaries = append(canaries, c)
	}
	for _, leak := range s.world.Leaks(canaries) {
		t.Errorf("canary %s", leak)
	}
	err := s.files(func(name string, content []byte) {
		if sum, ok := s.given[name]; ok && sum == sha256.Sum256(content) {
			return
		}
		for _, c := range canaries {
			if helmtest.Holds(content, c.Value) {
				t.Errorf("canary %q is in %s", c.Value, name)
			}
		}
	})
	if err != nil {
		t.Errorf("search for canaries: %v", err)
	}
}

// files calls f for every regular file below $WORK.
func (s *scene) files(f func(name string, content []byte)) error {
	return filepath.WalkDir(s.work, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		if err == nil {
			f(name, content)
		}
		return nil
	})
}

// cmdTree lists the files below a directory.
func cmdTree(ts *testscript.TestScript, neg bool, args []string) {
	var long, all bool
	for len(args) > 1 && (args[0] == "-l" || args[0] == "-a") {
		long, all, args = long || args[0] == "-l", all || args[0] == "-a", args[1:]
	}
	usage(ts, !neg && len(args) == 1, "tree [-a] [-l] dir")
	out, root := ts.Stdout(), ts.MkAbs(args[0])
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == root:
			return err
		case d.IsDir() && !all && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() && !long:
			return nil
		}
		line, err := describe(root, name, d, long)
		fmt.Fprintln(out, line)
		return err
	})
	if !errors.Is(err, fs.ErrNotExist) {
		ts.Check(err)
	}
}

func describe(root, name string, d fs.DirEntry, long bool) (string, error) {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return "", err
	}
	line := filepath.ToSlash(rel)
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		return line + " -> " + target, err
	}
	info, err := d.Info()
	if long && err == nil {
		line = info.Mode().String() + " " + line
	}
	return line, err
}

// cmdDamage changes the last byte of every file below a directory.
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "damage dir")
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil || len(content) == 0 {
			return err
		}
		content[len(content)-1]++
		return os.WriteFile(name, content, 0o600)
	}))
}

// cmdDigest prints the digest of a file.
func cmdDigest(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "digest file")
	fmt.Fprintf(ts.Stdout(), "sha256:%x\n", sha256.Sum256([]byte(ts.ReadFile(args[0]))))
}

// cmdArchive lists the entries of a gzipped tar, or prints one of them.
func cmdArchive(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && (len(args) == 1 || len(args) == 2), "archive file [entry]")
	gz, err := gzip.NewReader(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		if len(args) == 1 {
			fmt.Fprintln(ts.Stdout(), h.Name)
		} else if args[1] == h.Name {
			_, err := io.Copy(ts.Stdout(), tr)
			ts.Check(err)
			return
		}
	}
	if len(args) == 2 {
		ts.Fatalf("no entry %s", args[1])
	}
}

// cmdPackage makes an archive of the source of a chart.
func cmdPackage(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "package dir file.tgz")
	c, err := helmtest.ReadChart(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := c.Package()
	ts.Check(err)
	ts.Check(writeFile(ts.MkAbs(args[1]), b))
}

// cmdRepo writes the files that a server of the same directory would serve.
func cmdRepo(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "repo from to")
	files, err := helmtest.ReadRepository(ts.MkAbs(args[0]))
	ts.Check(err)
	for name, content := range files {
		ts.Check(writeFile(filepath.Join(ts.MkAbs(args[1]), filepath.FromSlash(name)), bytes.Clone(content)))
	}
}

// cmdHelm sets HELM to a real helm, which is built once.
func cmdHelm(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && (len(args) == 0 || len(args) == 1 && args[0] == "4"), "helm [4]")
	build := helmtest.Helm
	if len(args) > 0 {
		build = helmtest.Helm4
	}
	path, err := build()
	ts.Check(err)
	ts.Setenv("HELM", path)
}
