// Package helm runs the user's helm to render charts: as a child with limits of time, memory and output, an empty Helm home,
// and without access to a cluster. It does not know where charts and values come from.
package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// Limits are the limits of one call of helm.
type Limits struct {
	Time   time.Duration
	Memory int64 // bytes; enforced on Linux, elsewhere only as a soft limit of the Go runtime
	Output int64 // bytes
}

const (
	// grace is the time that a killed helm has to close its output.
	grace = 2 * time.Second
	// maxStderr is the limit of helm's error output that is kept, in bytes.
	maxStderr = 64 << 10
	// versionTime and versionOutput are limits for helm version, as the program may not be helm.
	versionTime   = 20 * time.Second
	versionOutput = 64 << 10
)

// Tool is an installed helm.
type Tool struct {
	// Version is the version that it reports, such as v3.21.4.
	Version string
	// Trims is set if it trims the end of each document that it prints, as Helm 3 does; Helm 4 trims the last document only.
	Trims bool

	path   string
	home   string
	limits Limits
	keep   []string
	child  child
}

// Options choose a helm, and configure how it is run.
type Options struct {
	// Name is a program, "" for the helm in Path.
	Name string
	// Path is a list of directories as in the environment; relative directories are ignored.
	Path string
	// Home is an empty directory for helm only.
	Home string
	// Keep are additional variables of its environment.
	Keep   []string
	Limits Limits
}

// An UnusableError reports that helm is missing, or that a program is not a helm of a known version.
type UnusableError struct{ finding.Problem }

func notFound(name string) error {
	if name == "" {
		return &UnusableError{finding.Problem{Text: "helm is not installed, and is needed to render charts", Advice: finding.InstallHelm}}
	}
	return &UnusableError{finding.Problem{Text: name + " is not a program that can be run", Advice: finding.InstallHelm}}
}

func unknown(name, why string) error {
	return &UnusableError{finding.Problem{Text: name + " cannot be used: " + why, Advice: finding.OtherHelm}}
}

// Find returns a helm and its version. It returns an [*UnusableError] if helm is missing or of an unknown version.
func Find(ctx context.Context, o Options) (*Tool, error) {
	path, err := find(o)
	if err != nil {
		return nil, err
	}
	t := &Tool{path: path, home: o.Home, limits: Limits{Time: versionTime, Memory: o.Limits.Memory, Output: versionOutput}, keep: o.Keep}
	out, err := t.choose(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t.Version = strings.TrimSpace(string(out))
	major, ok := majorOf(t.Version)
	switch {
	case err != nil:
		return nil, unknown(path, "it does not report its version: "+err.Error())
	case !ok:
		return nil, unknown(path, "it does not answer as helm does")
	case major != 3 && major != 4:
		return nil, unknown(path, "its version is "+t.Version)
	}
	t.limits, t.Trims = o.Limits, major == 3
	return t, nil
}

// choose runs helm version in each kind of child that this system may have, and keeps the first kind that works. The kernel may
// refuse a namespace; then no program has run, and the next kind is tried. A program such as a wrapper of snap may fail in a
// namespace; then the other kinds with namespaces are skipped.
func (t *Tool) choose(ctx context.Context) (out []byte, err error) {
	var limit *LimitError
	ran := false
	for _, t.child = range children() {
		if ran && !t.child.networked {
			continue
		}
		out, err = t.run(ctx, versionArguments())
		if err == nil || ctx.Err() != nil || errors.As(err, &limit) {
			break
		}
		var failed *Error
		ran = errors.As(err, &failed)
	}
	return out, err
}

// Networked reports whether helm has the network of this machine. If not, it has an empty network namespace.
func (t *Tool) Networked() bool { return t.child.networked }

func find(o Options) (string, error) {
	if o.Name != "" {
		path, err := exec.LookPath(o.Name)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return "", notFound(o.Name)
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(o.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, "helm")); err == nil {
			return path, nil
		}
	}
	return "", notFound("")
}

var versionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v(\d{1,3})\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.+-]*)?$`)
})

func majorOf(version string) (int, bool) {
	m := versionPattern().FindStringSubmatch(version)
	if m == nil {
		return 0, false
	}
	major, err := strconv.Atoi(m[1])
	return major, err == nil
}

// Template renders a release. It returns an [*Error] if the chart is at fault, and a [*NameError] if a name of the release is
// invalid. It must not be called concurrently.
func (t *Tool) Template(ctx context.Context, r Release) (manifests []byte, err error) {
	args, err := r.arguments()
	if err != nil {
		return nil, err
	}
	values := filepath.Join(t.home, valuesFile)
	defer func() { err = errors.Join(err, os.Remove(values)) }()
	if err := os.WriteFile(values, r.Values, 0o600); err != nil {
		return nil, err
	}
	return t.run(ctx, args)
}

// LimitError reports a helm that was killed or crashed at a limit.
type LimitError struct{ finding.Problem }

func limitError(format string, args ...any) error {
	return &LimitError{finding.Problem{Text: "helm was stopped: " + fmt.Sprintf(format, args...), Advice: finding.HelmLimits}}
}

// run runs helm once.
func (t *Tool) run(ctx context.Context, args arguments) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, t.limits.Time)
	defer cancel()
	cmd := exec.CommandContext(limited, t.path, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.home, t.environment(), grace
	t.child.apply(cmd)
	stdout := &bounded{left: t.limits.Output, full: cancel}
	stderr := &bounded{left: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	unlimited := limitMemory(cmd.Process.Pid, t.limits.Memory)
	if unlimited != nil {
		cancel()
	}
	err := cmd.Wait()
	if unlimited != nil {
		return nil, unlimited
	}
	text := stderr.text.String()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case stdout.over:
		return nil, limitError("it printed more than %d MiB", t.limits.Output>>20)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, limitError("it did not finish within %s", t.limits.Time)
	case err != nil && (strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory")):
		return nil, limitError("it needed more than %d MiB of memory", t.limits.Memory>>20)
	case signalled(err):
		return nil, limitError("it crashed (%v), which may be its limit of %d MiB of memory", err, t.limits.Memory>>20)
	case err != nil:
		return nil, newError(err, text)
	}
	return stdout.text.Bytes(), nil
}

// signalled reports whether a program was ended by a signal, from outside or because it crashed.
func signalled(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() < 0
}

// environment returns the environment of helm, without anything of the user's: no cluster, no logins, no plugins.
func (t *Tool) environment() []string {
	at := func(name string) string { return filepath.Join(t.home, name) }
	env := []string{
		"HOME=" + t.home, "USERPROFILE=" + t.home, "TMPDIR=" + t.home, "TMP=" + t.home, "TEMP=" + t.home,
		"HELM_CACHE_HOME=" + at("cache"), "HELM_CONFIG_HOME=" + at("config"), "HELM_DATA_HOME=" + at("data"),
		"HELM_PLUGINS=" + at("plugins"), "HELM_REPOSITORY_CONFIG=" + at("repositories.yaml"), "HELM_REPOSITORY_CACHE=" + at("repository"),
		"HELM_REGISTRY_CONFIG=" + at("registry.json"), "DOCKER_CONFIG=" + at("docker"),
		"KUBECONFIG=" + at("kubeconfig"), "HELM_KUBEAPISERVER=http://127.0.0.1:1",
	}
	if t.limits.Memory > 0 {
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(t.limits.Memory*3/4, 10))
	}
	return append(env, t.keep...)
}

// bounded keeps the beginning of the text that is written to it, and calls full when there is more.
type bounded struct {
	text bytes.Buffer
	left int64
	over bool
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(int64(len(p)), b.left)
	b.text.Write(p[:n])
	b.left -= n
	if n < int64(len(p)) && !b.over {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}

// Error is helm's message about a chart that it cannot render.
type Error struct {
	Text string
	// File is a file of a chart, such as podinfo/templates/service.yaml, "" if helm names no file.
	File string
	Line int
}

func (e *Error) Error() string { return e.Text }

var (
	locationPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`([\w.@+-]+(?:/[\w.@+ -]+)+):(\d+)(?::\d+)?`)
	})
	yamlPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`YAML parse error on ([\w.@+-]+(?:/[\w.@+ -]+)+): .*?(?:line (\d+))?`)
	})
)

// newError parses the error and its place from helm's output: the innermost place, if templates include each other.
func newError(err error, stderr string) error {
	_, text, found := strings.Cut("\n"+stderr, "\nError: ")
	if !found {
		text = stderr
	}
	text, _, _ = strings.Cut(text, "\n\nUse --debug flag")
	text = strings.TrimSpace(text)
	if text == "" {
		text = err.Error()
	}
	e := &Error{Text: strings.Join(strings.Fields(text), " ")}
	if m := yamlPattern().FindStringSubmatch(e.Text); m != nil {
		e.File = m[1]
		return e
	}
	if all := locationPattern().FindAllStringSubmatch(e.Text, -1); all != nil {
		last := all[len(all)-1]
		e.File = last[1]
		e.Line, _ = strconv.Atoi(last[2])
	}
	return e
}
