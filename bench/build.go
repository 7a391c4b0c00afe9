package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tools are the programs that are measured, by name. A program that is not there is not measured.
type tools map[string]string

// buildTools builds helmsrc as a release has it, and helm from its sources, in a module of its own: with the libraries
// that helm was released with.
func buildTools(ctx context.Context, o *options, dir string) (tools, error) {
	t := tools{"helmsrc": o.binary}
	if o.before != "" {
		t["before"] = o.before
	}
	if curl, err := exec.LookPath("curl"); err == nil {
		t["curl"] = curl
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	if o.binary == "" {
		t["helmsrc"] = filepath.Join(dir, "helmsrc")
		// What the tests have built is good enough for smoke.
		if err := build(ctx, root, t["helmsrc"], ".", !o.smoke); err != nil {
			return nil, err
		}
	}
	if o.helm && o.helmBinary != "" {
		t["helm"] = o.helmBinary
	} else if o.helm {
		t["helm"] = filepath.Join(dir, "helm")
		if err := build(ctx, filepath.Join(root, "bench", "helm"), t["helm"], "helm.sh/helm/v3/cmd/helm", true); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "-m", "github.com/helmsrc/helmsrc").Output()
	if err != nil {
		return "", fmt.Errorf("run this inside of helmsrc's module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func build(ctx context.Context, dir, output, pkg string, release bool) error {
	args := []string{"build", "-o", output}
	env := os.Environ()
	if release {
		args = append(args, "-trimpath", "-ldflags=-s -w")
		env = append(env, "CGO_ENABLED=0")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
