package helmtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// The keys that the S3 server knows.
const (
	S3AccessKey = "S3ACCESSKEY"
	S3SecretKey = "s3-secret-key-of-the-tests"
)

// S3 is versitygw, a real S3 server, which keeps its buckets as directories.
type S3 struct {
	Handler http.Handler // what it answers, to be served at a name of a [Network]
	cmd     *exec.Cmd
	dir     string
}

// StartS3 starts a server of its own. The first time it takes minutes, to build it; later runs find it in the user's
// cache.
func StartS3() (*S3, error) {
	program, err := buildS3()
	if err != nil {
		return nil, err
	}
	s := &S3{}
	if err := s.start(program); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *S3) start(program string) (err error) {
	if s.dir, err = os.MkdirTemp("", "helmtest-s3-*"); err != nil {
		return err
	}
	for _, sub := range []string{"buckets", "meta"} {
		if err := os.Mkdir(filepath.Join(s.dir, sub), 0o755); err != nil {
			return err
		}
	}
	addr, err := freePort()
	if err != nil {
		return err
	}
	s.cmd = exec.CommandContext(context.Background(), program, "--access", S3AccessKey, "--secret", S3SecretKey, "--port", addr,
		"--region", "us-east-1", "--quiet", "posix", "--sidecar", filepath.Join(s.dir, "meta"), filepath.Join(s.dir, "buckets"))
	if err := s.cmd.Start(); err != nil {
		return err
	}
	// The name that the client has signed is in the Host header, which stays.
	s.Handler = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", addr, r.In.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return await(addr)
}

// Close ends the server and forgets its buckets.
func (s *S3) Close() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

func freePort() (string, error) {
	l, err := listen("127.0.0.1:0")
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
			return fmt.Errorf("the S3 server does not answer: %w", err)
		case <-tick.C:
		}
	}
}

const s3Program = "github.com/versity/versitygw/cmd/versitygw"

// buildS3 returns the program, which is built once for each version of it, however many packages are tested at a time.
func buildS3() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	module := filepath.Join(filepath.Dir(file), "s3server")
	sums, err := os.ReadFile(filepath.Join(module, "go.sum"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "helmsrc-test", fmt.Sprintf("versitygw-%s-%s-%x", runtime.GOOS, runtime.GOARCH, sha256.Sum256(sums)))
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
	args := []string{"go", "build", "-trimpath", "-o", fresh, s3Program}
	if _, err := exec.LookPath("nice"); err == nil {
		args = append([]string{"nice"}, args...)
	}
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", s3Program, err, out)
	}
	return program, os.Rename(fresh, program)
}

// S3Host is the URL of a server as an endpoint of S3: without a scheme.
func S3Host(s *Server) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.Addr
	}
	return u.Host
}
