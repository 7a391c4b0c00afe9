//go:build bench

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tools are the measured programs, by name. Missing programs are not measured.
type tools map[string]string

// buildTools builds helmsrc as for a release, and helm, oras and cosign from their sources, each in its own module with the
// libraries of its release. An installed oras or cosign is not built.
func buildTools(ctx context.Context, o *options, dir string) (tools, error) {
	t := tools{}
	if o.before != "" {
		if err := t.addBuilt(ctx, "before", o.before, dir, "", "", true); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"curl", "git", "oras", "cosign"} {
		if there, err := exec.LookPath(name); err == nil {
			t[name] = there
		}
	}
	if err := t.addBuilt(ctx, "helmsrc", o.binary, dir, ".", ".", !o.smoke); err != nil {
		return nil, err
	}
	if !o.helm {
		return t, nil
	}
	for _, rival := range []struct{ name, there, module, pkg string }{
		{"oras", t["oras"], "bench/oras", "oras.land/oras/cmd/oras"},
		{"cosign", t["cosign"], ".ci/cosign", "github.com/sigstore/cosign/v2/cmd/cosign"},
		{"helm", o.helmBinary, "bench/helm", "helm.sh/helm/v3/cmd/helm"},
	} {
		if err := t.addBuilt(ctx, rival.name, rival.there, dir, rival.module, rival.pkg, true); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// addBuilt builds a package of a nested module, unless the program exists. A build that is not for a release can use the build
// cache of the tests.
func (t tools) addBuilt(ctx context.Context, name, there, dir, module, pkg string, release bool) error {
	var err error
	if there == "" {
		there = filepath.Join(dir, name)
		err = build(ctx, module, there, pkg, release)
	}
	if err == nil {
		t[name], err = copied(there, filepath.Join(dir, "run-"+name))
	}
	return err
}

// copied copies a program before it runs, in small pieces, as programs are unpacked and installed. How many pages of its
// file a process gets at once, and so its peak, depends on how the file was written: the same program has 40 MiB after
// this, 45 as a linker leaves it, and 60 written at once.
func copied(from, to string) (string, error) {
	source, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer source.Close()
	program, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o700)
	if err != nil {
		return "", err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{program}, struct{ io.Reader }{source}, make([]byte, 32<<10))
	return to, errors.Join(err, program.Close())
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "-m", "github.com/helmsrc/helmsrc").Output()
	if err != nil {
		return "", fmt.Errorf("run this inside of helmsrc's module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func build(ctx context.Context, module, output, pkg string, release bool) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	args := []string{"build", "-o", output}
	env := os.Environ()
	if release {
		args = append(args, "-trimpath", "-ldflags=-s -w")
		env = append(env, "CGO_ENABLED=0")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir, cmd.Env = filepath.Join(root, module), env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
