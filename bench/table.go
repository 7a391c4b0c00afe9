//go:build bench

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"
)

// printHeader prints the machine, the programs and the number of runs.
func printHeader(w io.Writer, o *options, t tools) {
	fmt.Fprintf(w, "%s/%s, %d CPUs, %s, %d runs of each\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), o.runs)
	for _, name := range []string{"helmsrc", "before", "helm"} {
		if info, err := os.Stat(t[name]); err == nil {
			fmt.Fprintf(w, "%s: %.1f MB\n", name, float64(info.Size())/1e6)
		}
	}
}

// printGroup prints a table. The last column compares medians with the first line.
func printGroup(w io.Writer, g group, all []*series) {
	fmt.Fprintf(w, "\n### %s\n\n", g.name)
	fmt.Fprintln(w, "| | wall, ms: min | median | max | CPU, ms | peak, MiB | requests | × |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|")
	var first time.Duration
	for _, s := range all {
		walls := sorted(s, func(x sample) time.Duration { return x.wall })
		median := walls[len(walls)/2]
		first = cmp.Or(first, median)
		cpus := sorted(s, func(x sample) time.Duration { return x.cpu })
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %d | %.2f |\n", s.contender.name,
			milliseconds(walls[0]), milliseconds(median), milliseconds(walls[len(walls)-1]),
			milliseconds(cpus[len(cpus)/2]), mebibytes(s.memory), s.samples[0].requests, float64(median)/float64(first))
	}
}

func sorted(s *series, of func(sample) time.Duration) []time.Duration {
	var list []time.Duration
	for _, x := range s.samples {
		list = append(list, of(x))
	}
	slices.Sort(list)
	return list
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.*f", precision(d), float64(d)/float64(time.Millisecond))
}

// precision returns the number of decimals that keeps three digits.
func precision(d time.Duration) int {
	if d < 100*time.Millisecond {
		return 1
	}
	return 0
}

func mebibytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", float64(n)/(1<<20))
}
