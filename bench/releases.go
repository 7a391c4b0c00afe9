//go:build bench

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

const (
	// releaseSources is the number of repositories, releaseCharts that of charts in each.
	releaseSources, releaseCharts = 25, 40
	// releaseFill is the size of a chart archive, in bytes.
	releaseFill = 12 << 10
	// releasesPerFile is the number of releases in a file.
	releasesPerFile = 50
)

// releases fetches generated HelmReleases in shards, one after the other, and merges them. It prints a row for each process.
func releases(ctx context.Context, program string, count, shards int) error {
	dir, err := os.MkdirTemp("", "helmsrc-releases-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	addr, requests, err := serveReleases(ctx)
	if err != nil {
		return err
	}
	if err := writeReleases(filepath.Join(dir, "manifests"), "http://"+addr, count); err != nil {
		return err
	}
	fmt.Printf("%d HelmReleases, %d shards\n\n| process | time | CPU | memory | requests |\n|---|---|---|---|---|\n", count, shards)
	row := func(name string, args ...string) error {
		before, start := requests.Load(), time.Now()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			return err
		}
		p, stop, stopped := &process{cmd: cmd}, make(chan struct{}), make(chan struct{})
		go func() { p.watch(stop); close(stopped) }()
		err := cmd.Wait()
		took := time.Since(start)
		close(stop)
		<-stopped
		if err != nil {
			return fmt.Errorf("%s: %w\n%.2000s", strings.Join(args, " "), err, &out)
		}
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		fmt.Printf("| %s | %.1f s | %.1f s | %d MiB | %d |\n", name, took.Seconds(), cpu.Seconds(), p.peak>>20, requests.Load()-before)
		return nil
	}
	merge := []string{"merge", "-d", "whole", "-q", "-o", "name"}
	for i := range shards {
		part, to := fmt.Sprintf("%d/%d", i, shards), "shard-"+strconv.Itoa(i)
		if err := row("fetch --shard "+part, "fetch", "-R", "-f", "manifests", "-d", to, "--shard", part, "-q", "-o", "name", "--timeout", "1h", "--cache-dir", "cache-"+to); err != nil {
			return err
		}
		merge = append(merge, to)
	}
	if err := row("fetch again, of the last", "fetch", "-R", "-f", "manifests", "-d", merge[len(merge)-1], "--shard", fmt.Sprintf("%d/%d", shards-1, shards), "-q", "-o", "name", "--timeout", "1h", "--cache-dir", "cache-"+merge[len(merge)-1]); err != nil {
		return err
	}
	if shards == 1 {
		return nil
	}
	return row("merge", merge...)
}

// serveReleases serves the repositories, and counts the requests.
func serveReleases(ctx context.Context) (addr string, requests *atomic.Int64, err error) {
	files := map[string][]byte{}
	for source := range releaseSources {
		var index bytes.Buffer
		index.WriteString("apiVersion: v1\nentries:\n")
		for chart := range releaseCharts {
			name := fmt.Sprintf("chart-%02d", chart)
			fill := make([]byte, releaseFill)
			_, _ = rand.NewChaCha8(sha256.Sum256([]byte(name + strconv.Itoa(source)))).Read(fill)
			archive, err := helmtest.NewChart(name, "1.0.0").With("files/data.bin", string(fill)).Package()
			if err != nil {
				return "", nil, err
			}
			sum := sha256.Sum256(archive)
			files[fmt.Sprintf("/%d/%s-1.0.0.tgz", source, name)] = archive
			fmt.Fprintf(&index, "  %s:\n  - {apiVersion: v2, name: %s, version: 1.0.0, digest: %s, urls: [%s-1.0.0.tgz]}\n", name, name, hex.EncodeToString(sum[:]), name)
		}
		files[fmt.Sprintf("/%d/index.yaml", source)] = index.Bytes()
	}
	requests = new(atomic.Int64)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if data, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(data)
			return
		}
		http.NotFound(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), requests, nil
}

func writeReleases(dir, url string, count int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var b strings.Builder
	for source := range releaseSources {
		fmt.Fprintf(&b, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: source-%d, namespace: flux-system}\nspec: {interval: 1h, url: \"%s/%d\"}\n", source, url, source)
	}
	if err := os.WriteFile(filepath.Join(dir, "sources.yaml"), []byte(b.String()), 0o600); err != nil {
		return err
	}
	for file := 0; file*releasesPerFile < count; file++ {
		b.Reset()
		for i := file * releasesPerFile; i < min(count, (file+1)*releasesPerFile); i++ {
			fmt.Fprintf(&b, `---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: release-%05d
  namespace: namespace-%d
spec:
  interval: 1h
  chart:
    spec:
      chart: chart-%02d
      version: 1.0.0
      sourceRef: {kind: HelmRepository, name: source-%d, namespace: flux-system}
  values:
    replicaCount: %d
    image: {repository: registry.example.org/app-%d, tag: 1.2.3}
    resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
`, i, i%200, i/releaseSources%releaseCharts, i%releaseSources, i%5, i)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("releases-%04d.yaml", file)), []byte(b.String()), 0o600); err != nil {
			return err
		}
	}
	return nil
}
