//go:build bench

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sample is one run of one process.
type sample struct {
	wall, cpu time.Duration
	requests  int
}

// series is all runs of one contender.
type series struct {
	contender *contender
	samples   []sample
	memory    int64 // peak in bytes; 0 if unknown
}

// runner runs the contenders of groups.
type runner struct {
	options *options
	tools   tools
	server  *server
	dir     string
}

// measure runs the contenders of a group in turns, so that a slow moment of the machine affects all of them, and prints the
// times. The first turn is not counted: it warms the caches of files and pages.
func (b *runner) measure(ctx context.Context, g group) error {
	var all []*series
	for i := range g.contenders {
		if b.tools[g.contenders[i].tool] != "" {
			all = append(all, &series{contender: &g.contenders[i]})
		}
	}
	runs := b.options.runs
	if !b.options.smoke {
		runs = max(runs, g.runs)
	}
	for turn := range runs + 1 {
		for _, s := range all {
			if s.contender.slow && turn > max(1, runs/4) {
				continue
			}
			one, err := b.run(ctx, s, turn == 0)
			if err != nil {
				return fmt.Errorf("%s: %w", s.contender.name, err)
			}
			if turn > 0 {
				s.samples = append(s.samples, one)
			}
		}
	}
	printGroup(os.Stdout, g, all)
	if g.after == nil {
		return nil
	}
	return g.after(ctx, b, os.Stdout)
}

// run runs a contender once in a new directory. In the first run it watches the memory, which takes time, so that run does not
// count.
func (b *runner) run(ctx context.Context, s *series, watched bool) (sample, error) {
	work, done, err := b.emptyDir()
	if err != nil {
		return sample{}, err
	}
	defer done()
	j := job{addr: b.server.addr, scale: b.server.scale, work: work, data: b.server.data}
	if s.contender.first != nil {
		args, err := s.contender.first(&j)
		if err == nil {
			err = b.start(ctx, s, work, args).run()
		}
		if err != nil {
			return sample{}, err
		}
	}
	args, err := s.contender.args(&j)
	if err != nil {
		return sample{}, err
	}
	if s.contender.warm {
		if err := b.start(ctx, s, work, args).run(); err != nil {
			return sample{}, err
		}
	}
	if _, err := b.server.requests(ctx); err != nil {
		return sample{}, err
	}
	p := b.start(ctx, s, work, args)
	p.watched = watched
	began := time.Now()
	err = p.run()
	wall := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	s.memory = max(s.memory, p.peak)
	state := p.cmd.ProcessState
	requests, err := b.server.requests(ctx)
	return sample{wall, state.UserTime() + state.SystemTime(), requests}, err
}

// emptyDir makes a directory for one run. Nothing is removed until all runs are over: ext4 does not use the inodes of removed
// files again for a while and looks past each of them, which took half of the time of a run that makes many files. When a run
// is done, only large files are truncated.
func (b *runner) emptyDir() (dir string, done func(), err error) {
	dir, err = os.MkdirTemp(b.dir, "run-")
	return dir, func() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if info, err := d.Info(); err == nil && info.Size() > 1<<20 {
				return os.Truncate(path, 0)
			}
			return nil
		})
	}, err
}

func (b *runner) start(ctx context.Context, s *series, work string, args []string) *process {
	return b.process(ctx, b.tools[s.contender.tool], work, args)
}

func (b *runner) process(ctx context.Context, program, work string, args []string) *process {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = work
	// No settings, logins or proxies of the user.
	cmd.Env = []string{"HOME=" + work, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + work}
	return &process{cmd: cmd}
}

// process is a running program.
type process struct {
	cmd     *exec.Cmd
	watched bool
	peak    int64
}

func (p *process) run() error {
	var stderr bytes.Buffer
	p.cmd.Stderr = &stderr
	if err := p.cmd.Start(); err != nil {
		return err
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if p.watched {
			p.watch(stop)
		}
	}()
	err := p.cmd.Wait()
	close(stop)
	<-done
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &stderr)
	}
	return nil
}

// watch reads the peak of the process's memory repeatedly until it ends. The value of wait4 cannot be used: it is at least the
// memory of the parent at the start of the process.
func (p *process) watch(stop chan struct{}) {
	status := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	ticker := time.NewTicker(200 * time.Microsecond)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		b, err := os.ReadFile(status)
		if err != nil {
			return // it has ended, or this is no Linux
		}
		p.peak = max(p.peak, highWater(b))
	}
}

// highWater returns VmHWM, in bytes.
func highWater(status []byte) int64 {
	for line := range strings.Lines(string(status)) {
		rest, found := strings.CutPrefix(line, "VmHWM:")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err == nil {
			return kilobytes << 10
		}
	}
	return 0
}
