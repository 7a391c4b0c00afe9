//go:build bench

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// startRuns is the least number of measured starts: a start is short, and its median counts.
const startRuns = 20

// version starts programs that do nothing.
func version() group {
	return group{name: "version", runs: startRuns, after: beforeMain, contenders: []contender{
		{name: "helmsrc version", tool: "helmsrc", args: arguments("version")},
		{name: "helmsrc version (before)", tool: "before", args: arguments("version")},
		{name: "helm version", tool: "helm", args: arguments("version")},
	}}
}

// beforeMain prints the memory that the packages of each program allocate before main begins.
func beforeMain(ctx context.Context, b *runner, w io.Writer) error {
	for _, name := range []string{"helmsrc", "before"} {
		if b.tools[name] == "" {
			continue
		}
		packages, size, took, err := initialised(ctx, b.tools[name])
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\n%s: %d packages are initialised, with %.2f MB, in %.1f ms\n", name, packages, float64(size)/1e6, took)
	}
	return nil
}

// initialised returns how many packages a program initialises, the bytes that they allocate, and their milliseconds.
func initialised(ctx context.Context, program string) (packages, size int, took float64, err error) {
	cmd := exec.CommandContext(ctx, program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace bytes.Buffer
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		return 0, 0, 0, fmt.Errorf("%w\n%s", err, &trace)
	}
	for line := range bytes.Lines(trace.Bytes()) {
		var name string
		var at, clock float64
		var bytes int
		if n, _ := fmt.Sscanf(string(line), "init %s @%f ms, %f ms clock, %d bytes", &name, &at, &clock, &bytes); n < 4 {
			continue
		}
		packages, size, took = packages+1, size+bytes, took+clock
	}
	return packages, size, took, nil
}
