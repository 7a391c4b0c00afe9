package helmtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// A program is a server in a separate process.
type program struct {
	cmd *exec.Cmd
	dir string // temporary
}

// startProgram starts a server and waits until it listens. Args returns its arguments for an address and a directory.
func startProgram(module, name string, args func(addr, dir string) ([]string, error)) (*program, http.Handler, error) {
	file, err := buildProgram(module, name)
	if err != nil {
		return nil, nil, err
	}
	p := &program{}
	if p.dir, err = os.MkdirTemp("", "helmtest-*"); err != nil {
		return nil, nil, err
	}
	addr, err := p.start(file, args)
	if err != nil {
		p.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	// The Host header stays, because the client signed it.
	return p, &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", addr, r.In.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}, nil
}

func (p *program) start(file string, args func(addr, dir string) ([]string, error)) (string, error) {
	addr, err := freePort()
	if err != nil {
		return "", err
	}
	list, err := args(addr, p.dir)
	if err != nil {
		return "", err
	}
	p.cmd = exec.CommandContext(context.Background(), file, list...)
	if err := p.cmd.Start(); err != nil {
		return "", err
	}
	return addr, await(addr)
}

// Close stops the server and removes its files.
func (p *program) Close() {
	if p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
	_ = os.RemoveAll(p.dir)
}

var programs atomic.Uint32

// freePort returns a free address. On Linux each program of each test process has its own IP address: between this look and its start
// another test's server could take the port otherwise, and would be taken for it.
func freePort() (string, error) {
	ip := "127.0.0.1"
	if runtime.GOOS == "linux" {
		pid := os.Getpid()
		ip = fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%250, pid&0xff, 1+programs.Add(1)%250)
	}
	l, err := listen(ip + ":0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// await waits until a connection is accepted.
func await(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-tick.C:
		}
	}
}

// buildProgram returns the program, a tool of the module in the directory beside this file, which is built once for each
// version of it, also if several packages are tested at a time.
func buildProgram(module, name string) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	module = filepath.Join(filepath.Dir(file), module)
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "helmsrc-test", fmt.Sprintf("%s-%s-%s-%x", path.Base(name), runtime.GOOS, runtime.GOARCH, sha256.Sum256(sums)))
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(program + ".lock").Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	fresh := fmt.Sprintf("%s.%d", program, os.Getpid())
	args := []string{"go", "build", "-trimpath", "-o", fresh, name}
	if _, err := exec.LookPath("nice"); err == nil {
		args = append([]string{"nice"}, args...)
	}
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return program, os.Rename(fresh, program)
}

// Helm returns the Helm 3 that renders charts in tests, Helm4 a Helm 4.
func Helm() (string, error)  { return buildProgram("helm", "helm.sh/helm/v3/cmd/helm") }
func Helm4() (string, error) { return buildProgram("helm4", "helm.sh/helm/v4/cmd/helm") }
