// Package program tests the program as a whole: its commands and their output. TestScript runs the scripts in testdata/script.
package program

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/helmsrc/helmsrc/cmd"
	"github.com/helmsrc/helmsrc/internal/heap"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

// TestMain makes this test binary the helmsrc of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(cleanup{m}, map[string]func(){
		"helmsrc":      func() { os.Exit(helmsrc("helmsrc")) },
		"flux-helmsrc": func() { os.Exit(helmsrc("flux helmsrc")) },
	})
}

// TestScript runs testdata/script: see the README there.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		Setup:               setup,
		Cmds:                scriptCommands,
		Condition:           condition,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// scriptTime is the clock of the scripts; $NOW sets another one.
const scriptTime = "2026-01-02T03:04:05Z"

// stateDir is a directory below $WORK for files that the servers, the program and the commands of a script exchange.
const stateDir = ".helmtest"

// helmsrc runs the program on the network of the script that called it. It records the output for the search for canaries,
// with $WORK instead of the script's directory.
func helmsrc(program string) int {
	heap.Adapt()
	work := os.Getenv("WORK")
	state := func(name string) string { return filepath.Join(work, stateDir, name) }
	hosts, err := os.ReadFile(state("network"))
	if err != nil {
		panic(err)
	}
	network, err := helmtest.ParseNetwork(string(hosts))
	if err != nil {
		panic(err)
	}
	now, err := time.Parse(time.RFC3339, os.Getenv("NOW"))
	if err != nil {
		panic(err)
	}
	log, err := os.OpenFile(state("output"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	stdout := &worklessWriter{w: io.MultiWriter(os.Stdout, log), work: work}
	stderr := &worklessWriter{w: io.MultiWriter(os.Stderr, log), work: work}
	code := cmd.Interruptible(context.Background(), &cmd.Env{
		Args:   os.Args[1:],
		Stdin:  os.Stdin,
		Stdout: stdout,
		Stderr: stderr,
		Terminal: func() (int, int, bool) {
			var width, height int
			_, err := fmt.Sscanf(os.Getenv("TERMINAL"), "%dx%d", &width, &height)
			return width, height, err == nil
		},
		Reads:   func() bool { return os.Getenv("STDOUT") == "terminal" },
		Kept:    func() bool { info, err := os.Stdout.Stat(); return err == nil && info.Mode().IsRegular() },
		Getenv:  os.Getenv,
		Environ: os.Environ,
		Now:     func() time.Time { return now },
		Dial:    network.Dial,
		Program: program,
	}, os.Exit)
	stdout.flush()
	stderr.flush()
	if err := os.WriteFile(state("exit"), []byte(strconv.Itoa(code)), 0o600); err != nil {
		panic(err)
	}
	return code
}

// worklessWriter passes whole lines on, with $WORK instead of the directory of the script.
type worklessWriter struct {
	mu   sync.Mutex
	w    io.Writer
	work string
	rest []byte
}

func (w *worklessWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, p...)
	i := bytes.LastIndexByte(w.rest, '\n') + 1
	_, err := w.w.Write(w.workless(w.rest[:i]))
	w.rest = append([]byte(nil), w.rest[i:]...)
	return len(p), err
}

func (w *worklessWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.w.Write(w.workless(w.rest))
}

func (w *worklessWriter) workless(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte(filepath.ToSlash(w.work)), []byte("$WORK"))
	return bytes.ReplaceAll(b, []byte(w.work), []byte("$WORK"))
}

// cleanup removes the files of the registries after the tests.
type cleanup struct{ *testing.M }

// Run runs the tests. Scripts wait for servers, locks and timeouts, so more of them run at a time than there are processors, unless
// the flag -parallel limits them.
func (c cleanup) Run() int {
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	if err := os.Chdir(filepath.Join("..", "..")); err != nil { // tests name files from the root of the project
		panic(err)
	}
	defer registry.Cleanup()
	return c.M.Run()
}

var kit = sync.OnceValues(helmtest.NewKit)

// setup starts a server for each directory whose name begins with an underscore, and writes the certificates of the script to
// tls/, and the credentials of the servers to login/.
func setup(env *testscript.Env) error {
	k, err := kit()
	if err != nil {
		return err
	}
	w := helmtest.NewWorld(k)
	w.Kinds["registry"] = registry.KindWith(registry.Hooks{Change: signArchives, Add: signIn(w)})
	w.Kinds["repo"] = signedRepository(w.Kinds["repo"])
	w.SignGit = signGit
	env.Defer(w.Close)
	if err := writeSigning(env.WorkDir); err != nil {
		return err
	}
	if err := startServers(env, w); err != nil {
		return err
	}
	env.Setenv("NOW", scriptTime)
	// The cache is searched for secrets, too.
	env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, ".cache"))
	// The race detector sleeps for a second at the end of each process, and the scripts have hundreds of them.
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	for dir, files := range map[string]map[string][]byte{"tls": k.Files(), "login": w.Files} {
		for file, content := range files {
			if err := writeFile(filepath.Join(env.WorkDir, dir, file), content); err != nil {
				return err
			}
		}
	}
	s := &scene{world: w, work: env.WorkDir}
	if err := s.begin(); err != nil {
		return err
	}
	env.Values[sceneKey{}] = s
	t, _ := env.T().(testing.TB)
	env.Defer(func() { s.search(t) })
	return writeFile(filepath.Join(env.WorkDir, stateDir, "network"), []byte(w.Network.String()))
}

// startServers starts servers with the files of directories and sets environment variables to their addresses: $REPO is the
// URL of _repo, $REGISTRY the host of _registry.
func startServers(env *testscript.Env, w *helmtest.World) error {
	dirs, err := filepath.Glob(filepath.Join(env.WorkDir, "_*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		name := strings.TrimPrefix(filepath.Base(dir), "_")
		if err := w.Start(name, dir); err != nil {
			return err
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	for name, s := range w.Servers {
		value := s.URL
		if strings.HasPrefix(name, "registry") {
			_, value, _ = strings.Cut(s.URL, "://")
		}
		env.Setenv(strings.ToUpper(strings.ReplaceAll(name, "-", "_")), value)
	}
	return nil
}

func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o600)
}

// condition supports [root]: the script runs with rights that file modes do not limit.
func condition(name string) (bool, error) {
	if name == "root" {
		return os.Geteuid() == 0, nil
	}
	return false, os.ErrInvalid
}
