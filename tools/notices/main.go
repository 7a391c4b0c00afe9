// Command notices writes the licenses of all modules that are linked into the program, for the archives and images of a
// release.
//
//	go -C tools run ./notices -dir=.. -o FILE
//
// It fails if a module has no license text, so that nothing is released without one.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// platforms are those of .goreleaser.yaml: what is linked differs between systems.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

func main() {
	dir := flag.String("dir", ".", "the `directory` of the program")
	out := flag.String("o", "", "the `file` to write")
	flag.Parse()
	if err := run(*dir, *out); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	modules, err := linked(dir)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := write(&b, modules); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// module is one that is linked, with the directories of its packages.
type module struct {
	path, version, root string
	packages            []string
}

// linked lists the modules of the packages that the program in dir is made of, on any platform, in order of their paths.
func linked(dir string) ([]*module, error) {
	found := map[string]*module{}
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", ".")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", platform, err)
		}
		if err := add(found, text); err != nil {
			return nil, err
		}
	}
	found["go"] = &module{path: "The Go standard library", version: runtime.Version(), root: runtime.GOROOT()}
	modules := make([]*module, 0, len(found))
	for _, m := range found {
		slices.Sort(m.packages)
		m.packages = slices.Compact(m.packages)
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.path, b.path) })
	return modules, nil
}

// add puts the packages of a listing with their modules. The program's own module is left out.
func add(found map[string]*module, text []byte) error {
	type listed struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *listed
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version, root: p.Module.Dir}
			if r := p.Module.Replace; r != nil {
				m.version = strings.TrimSpace(r.Path + " " + r.Version)
			}
			found[p.Module.Path] = m
		}
		m.packages = append(m.packages, p.Dir)
	}
}

var licenseName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// isSource: license.go is a program about licenses.
func isSource(name string) bool {
	return slices.Contains([]string{".go", ".tmpl", ".json", ".yaml"}, filepath.Ext(name))
}

// texts returns the license files of a module by their place in it: those at its root, and those beside its linked packages
// or between these and the root, which code copied from elsewhere has.
func (m *module) texts() (map[string]string, error) {
	dirs := map[string]bool{m.root: true}
	for _, p := range m.packages {
		for ; strings.HasPrefix(p, m.root) && !dirs[p]; p = filepath.Dir(p) {
			dirs[p] = true
		}
	}
	texts, licensed := map[string]string{}, false
	for dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenseName.MatchString(e.Name()) || isSource(e.Name()) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if len(bytes.TrimSpace(b)) == 0 {
				continue
			}
			name, _ := filepath.Rel(m.root, filepath.Join(dir, e.Name()))
			texts[filepath.ToSlash(name)] = strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n"))
			lower := strings.ToLower(e.Name())
			licensed = licensed || dir == m.root && !strings.HasPrefix(lower, "notice") && !strings.HasPrefix(lower, "patents")
		}
	}
	if !licensed {
		return nil, fmt.Errorf("%s %s has no license text: %w", m.path, m.version, fs.ErrNotExist)
	}
	return texts, nil
}

const rule = "--------------------------------------------------------------------------------"

// write prints the list of modules, then each text once with the modules that it is from.
func write(w io.Writer, modules []*module) error {
	fmt.Fprintf(w, "helmsrc contains the following software, each under its own license.\n\n")
	var order []string
	of := map[string][]string{}
	for _, m := range modules {
		fmt.Fprintf(w, "  %s %s\n", m.path, m.version)
		texts, err := m.texts()
		if err != nil {
			return err
		}
		names := make([]string, 0, len(texts))
		for name := range texts {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			text := texts[name]
			if of[text] == nil {
				order = append(order, text)
			}
			of[text] = append(of[text], m.path+" ("+name+")")
		}
	}
	for _, text := range order {
		fmt.Fprintf(w, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(of[text], "\n"), rule, text)
	}
	return nil
}
