//go:build bench

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helmsrc/helmsrc/internal/index/indextest"
)

const (
	// slowly is the path below which the server waits for latency before each answer, like a distant server.
	slowly  = "/slowly"
	latency = 20 * time.Millisecond

	// parallel is the number of simultaneous transfers of curl.
	parallel = 100
)

func slow(next http.Handler) http.Handler {
	return http.StripPrefix(slowly, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(latency):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
}

// far fetches charts of several distant repositories.
func far(o *options) group {
	sizes := scaleOf(o).Indexes[lockedIndexes:]
	fetch := with(func(j *job) (string, error) { return j.manyManifests(slowly) }, "fetch", "-q", "-o", "name")
	return group{
		name:  fmt.Sprintf("%d charts of %d repositories, %v away", len(sizes)*sizes[0].Charts, len(sizes), latency),
		after: systemCalls(len(sizes)*sizes[0].Charts, fetch),
		contenders: []contender{
			{name: "curl --parallel", tool: "curl", args: parallelCurl},
			{name: "helmsrc fetch, cold", tool: "helmsrc", args: fetch},
			{name: "helmsrc fetch, cold (before)", tool: "before", args: fetch},
			{name: "helmsrc fetch, warm", tool: "helmsrc", warm: true, args: fetch},
			{name: "helmsrc fetch, warm (before)", tool: "before", warm: true, args: fetch},
		},
	}
}

// parallelCurl downloads the same indexes and archives.
func parallelCurl(j *job) ([]string, error) {
	var list strings.Builder
	for i, size := range j.scale.Indexes[lockedIndexes:] {
		_, version := size.chosen()
		base := "http://" + j.addr + slowly + strings.TrimPrefix(j.repository(lockedIndexes+i), "http://"+j.addr)
		files := []string{"index.yaml"}
		for c := range size.Charts {
			files = append(files, indextest.ChartName(c)+"-"+version+".tgz")
		}
		for _, file := range files {
			fmt.Fprintf(&list, "url = %q\noutput = %q\n", base+"/"+file, size.Name+"-"+file)
		}
	}
	file := filepath.Join(j.work, "curl.txt")
	return []string{"-sS", "--parallel", "--parallel-max", strconv.Itoa(parallel), "-K", file}, os.WriteFile(file, []byte(list.String()), 0o600)
}

// systemCalls prints the number of system calls of a command for each chart, if strace is installed.
func systemCalls(charts int, args func(*job) ([]string, error)) func(context.Context, *runner, io.Writer) error {
	return func(ctx context.Context, b *runner, w io.Writer) error {
		strace, err := exec.LookPath("strace")
		if err != nil {
			return nil //nolint:nilerr // it is optional
		}
		for _, name := range []string{"helmsrc", "before"} {
			if b.tools[name] == "" {
				continue
			}
			calls, err := b.traced(ctx, strace, name, args)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "\n%s, system calls of a cold run for each chart:", name)
			for _, call := range slices.Sorted(maps.Keys(calls)) {
				fmt.Fprintf(w, " %s %.2f", call, float64(calls[call])/float64(charts))
			}
			fmt.Fprintln(w)
		}
		return nil
	}
}

// counted are the system calls that are printed.
var counted = []string{"openat", "openat2", "close", "fcntl", "newfstatat", "fstat", "fsync", "mkdirat", "renameat", "renameat2", "linkat", "unlinkat"}

// traced runs a command in an empty directory, and returns the numbers of its system calls.
func (b *runner) traced(ctx context.Context, strace, tool string, args func(*job) ([]string, error)) (map[string]int, error) {
	work, done, err := b.emptyDir()
	if err != nil {
		return nil, err
	}
	defer done()
	list, err := args(&job{addr: b.server.addr, scale: b.server.scale, work: work})
	if err != nil {
		return nil, err
	}
	table := filepath.Join(b.dir, "strace.txt")
	p := b.process(ctx, strace, work, append([]string{"-f", "-c", "-o", table, b.tools[tool]}, list...))
	if err := p.run(); err != nil {
		return nil, err
	}
	return readCalls(table)
}

// readCalls reads the table of strace -c: in each line the count comes fourth, and the name last.
func readCalls(table string) (map[string]int, error) {
	file, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	calls := map[string]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || !slices.Contains(counted, fields[len(fields)-1]) {
			continue
		}
		if calls[fields[len(fields)-1]], err = strconv.Atoi(fields[3]); err != nil {
			return nil, err
		}
	}
	return calls, lines.Err()
}
