// Command mutate changes the program in one place at a time and looks whether a test notices.
//
//	go -C tools run ./mutate -dir=.. -n=100 -seed=1 ./internal/resolve ./internal/index
//
// The changes are a sample that depends on nothing but the seed and the sources. Each is compiled with -overlay, so that no
// file is touched; one that does not compile is left out. A change that no test of its package notices is tried with the
// scripts that -scripts names, if it names some; -at tries again what survived, -func changes some functions alone. What survives is printed, and makes the command exit 1.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", ".", "the `directory` of the module")
	flag.IntVar(&o.n, "n", 100, "the `number` of changes to try")
	flag.Uint64Var(&o.seed, "seed", 1, "the `seed` of the sample")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "the `limit` of the tests of one change; beyond it the change counts as noticed")
	flag.StringVar(&o.scripts, "scripts", "", "scripts to try what survives with, as a `pattern` for TestScript")
	flag.StringVar(&o.at, "at", "", "`places` to change instead of a sample, as FILE:LINE separated by commas")
	flag.StringVar(&o.functions, "func", "", "a `pattern` of the functions to change, as PACKAGE.FUNCTION or PACKAGE.TYPE.METHOD")
	flag.Parse()
	o.packages = flag.Args()
	survivors, err := o.run(context.Background(), os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(2)
	case survivors > 0:
		os.Exit(1)
	}
}

type options struct {
	dir, scripts string
	at           string
	functions    string
	packages     []string
	n            int
	seed         uint64
	timeout      time.Duration
}

// A location is a change of a file of a package.
type location struct {
	change
	pkg, file string
	source    []byte
}

func (o *options) run(ctx context.Context, w io.Writer) (survivors int, err error) {
	places, err := o.places(ctx)
	if err != nil {
		return 0, err
	}
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	temp, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	tried := 0
	for _, p := range places {
		if tried == o.n {
			break
		}
		if o.at != "" && !slices.Contains(strings.Split(o.at, ","), p.position()) {
			continue
		}
		overlay, err := p.overlay(temp)
		if err != nil {
			return survivors, err
		}
		if !o.passes(ctx, "build", overlay, p.pkg) {
			continue // it does not compile
		}
		tried++
		if o.noticed(ctx, overlay, p.pkg) {
			continue
		}
		survivors++
		fmt.Fprintf(w, "survived: %s\n", p.describe())
	}
	fmt.Fprintf(w, "%d of %d changes were noticed, %d survived; there are %d places, seed %d\n", tried-survivors, tried, survivors, len(places), o.seed)
	return survivors, nil
}

func (o *options) noticed(ctx context.Context, overlay, pkg string) bool {
	if !o.passes(ctx, "test", overlay, "-vet=off", "-failfast", "-timeout="+o.timeout.String(), pkg) {
		return true
	}
	return o.scripts != "" && !o.passes(ctx, "test", overlay, "-vet=off", "-failfast", "-timeout="+o.timeout.String(), "-run=TestScript/("+o.scripts+")$", "./test/program")
}

func (o *options) passes(ctx context.Context, verb, overlay string, args ...string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*o.timeout) // compiling takes its time, too
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-overlay=" + overlay}, args...)...)
	cmd.Dir = o.dir
	return cmd.Run() == nil
}

// places lists the changes of all packages, in the order of their files.
func (o *options) places(ctx context.Context) ([]location, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,ImportPath,GoFiles"}, o.packages...)...)
	cmd.Dir, cmd.Stderr = o.dir, os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	named, err := regexp.Compile("^(?:" + o.functions + ")$")
	if err != nil {
		return nil, fmt.Errorf("-func: %w", err)
	}
	var places []location
	for d := json.NewDecoder(strings.NewReader(string(text))); d.More(); {
		var p struct {
			Dir, ImportPath string
			GoFiles         []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			changes, err := changesOf(source)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, c := range changes {
				if o.functions == "" || named.MatchString(path.Base(p.ImportPath)+"."+c.in) {
					places = append(places, location{c, p.ImportPath, file, source})
				}
			}
		}
	}
	return places, nil
}

// overlay writes the changed file, and the file that has the go command take it.
func (p *location) overlay(dir string) (string, error) {
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, p.apply(p.source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{p.file: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// position is the file's name and the line.
func (p *location) position() string {
	return fmt.Sprintf("%s:%d", filepath.Base(p.file), 1+strings.Count(string(p.source[:p.from]), "\n"))
}

func (p *location) describe() string {
	short := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		if len(s) > 80 {
			s = s[:80] + "…"
		}
		return s
	}
	return fmt.Sprintf("%s/%s: %s: %s → %s", p.pkg, p.position(), p.what, short(string(p.source[p.from:p.to])), short(p.with))
}
