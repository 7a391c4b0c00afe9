package helmtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Git is a repository with a working tree. It requires the git program, as the tests of Git sources do.
type Git struct {
	Dir     string
	commits int
	Env     []string // more variables
}

// NewGit creates a repository in a directory, with the branch main.
func NewGit(dir string) (*Git, error) {
	g := &Git{Dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	_, err := g.Run("init", "-q", "-b", "main")
	return g, err
}

// Run runs git without the configuration of a user, and returns its output.
func (g *Git) Run(args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = g.Dir
	when := Created.Add(time.Duration(g.commits) * time.Hour).Format(time.RFC3339)
	cmd.Env = append(gitEnv(), "GIT_AUTHOR_DATE="+when, "GIT_COMMITTER_DATE="+when)
	cmd.Env = append(cmd.Env, g.Env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_AUTHOR_NAME=helmtest", "GIT_AUTHOR_EMAIL=helmtest@example.com",
		"GIT_COMMITTER_NAME=helmtest", "GIT_COMMITTER_EMAIL=helmtest@example.com",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
	}
}

// Commit writes files, removes those with empty content, and commits everything. Each commit is an hour younger than the one
// before. It returns the hash.
func (g *Git) Commit(message string, files map[string]string, flags ...string) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := g.Write(name, files[name]); err != nil {
			return "", err
		}
	}
	if _, err := g.Run("add", "-A"); err != nil {
		return "", err
	}
	g.commits++
	args := append([]string{"commit", "-q", "--allow-empty", "-m", message}, flags...)
	if _, err := g.Run(args...); err != nil {
		return "", err
	}
	return g.Run("rev-parse", "HEAD")
}

// Write writes a file of the working tree, or removes it if the content is empty.
func (g *Git) Write(name, content string) error {
	file := filepath.Join(g.Dir, filepath.FromSlash(name))
	if content == "" {
		return os.Remove(file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}

// GitHTTP serves the repositories below a directory with git-http-backend. With a user, USER:PASSWORD, it requires these
// credentials.
func GitHTTP(root, user string) (http.Handler, error) {
	out, err := exec.CommandContext(context.Background(), "git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	return BasicAuth(user, &cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:    append(gitEnv(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: io.Discard,
	}), nil
}
