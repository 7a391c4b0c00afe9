package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	// helperTimeout bounds one run of a credential helper. A helper that calls a cloud answers in seconds; nobody is
	// there to unlock a key ring for a helper that waits for it.
	helperTimeout = 30 * time.Second
	// helperGrace is how long a killed helper may keep its pipes open, through its child processes.
	helperGrace = time.Second
	// maxHelperBytes bounds the output of a helper. A token of a cloud is a few KiB.
	maxHelperBytes = 64 << 10
)

// helperNotFound is the helper protocol's text, in place of an error code, for "I have no login for this".
const helperNotFound = "credentials not found in native keychain"

// helperTokenUser is the user name with which a helper marks its secret as an identity token.
const helperTokenUser = "<token>"

var (
	helperName         = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })
	errHelperName      = errors.New("not a valid name for a credential helper")
	errHelperMissing   = errors.New("not found on PATH")
	errHelperOutput    = errors.New("its answer is not the JSON that credential helpers print")
	errHelperTooMuch   = fmt.Errorf("printed more than %d bytes", maxHelperBytes)
	errHelperTimedOut  = errors.New("did not answer in time")
	errHelperCancelled = errors.New("was interrupted")
)

type helperKey struct{ name, host string }

// askHelper runs a credential helper, once per helper and host. The answer is shared, a failure too, unless it is the
// asker's own cancellation.
func (a *Ambient) askHelper(ctx context.Context, name, host string) (Credential, error) {
	key := helperKey{name, RegistryHost(host)}
	return a.helpers.Do(ctx, key, func() (Credential, error) {
		cred, err := a.runHelper(ctx, name, key.host)
		if err != nil {
			err = fmt.Errorf("docker-credential-%s: %w", name, err)
		}
		return cred, err
	})
}

// runHelper speaks docker's credential helper protocol. The output of a failed helper is not repeated, because it may
// contain a secret.
func (a *Ambient) runHelper(ctx context.Context, name, host string) (Credential, error) {
	path, err := a.findHelper(name)
	if err != nil {
		return Credential{}, err
	}
	if host == dockerHub {
		host = dockerHubLogin
	}
	runCtx, cancel := context.WithTimeout(ctx, a.opts.HelperTimeout)
	defer cancel()
	var out boundedBuffer
	cmd := exec.CommandContext(runCtx, path, "get")
	cmd.WaitDelay = helperGrace
	cmd.Stdin = strings.NewReader(host)
	cmd.Stdout = &out
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return Credential{}, errHelperCancelled
	case runCtx.Err() != nil:
		return Credential{}, errHelperTimedOut
	case out.full:
		return Credential{}, errHelperTooMuch
	case err != nil && strings.TrimSpace(out.buffer.String()) == helperNotFound:
		return Credential{}, nil
	case err != nil:
		return Credential{}, err
	}
	return parseHelper(out.buffer.Bytes())
}

func parseHelper(out []byte) (Credential, error) {
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return Credential{}, errHelperOutput
	}
	if answer.Username == helperTokenUser {
		return IdentityTokenCredential(answer.Secret), nil
	}
	return BasicCredential(answer.Username, answer.Secret), nil
}

// findHelper looks the program up in the PATH of the injected environment, absolute directories only.
func (a *Ambient) findHelper(name string) (string, error) {
	if !helperName().MatchString(name) {
		return "", errHelperName
	}
	for _, dir := range filepath.SplitList(a.opts.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, "docker-credential-"+name)); err == nil {
			return path, nil
		}
	}
	return "", errHelperMissing
}

// boundedBuffer keeps at most maxHelperBytes and reports more as an error, which ends the copy. The buffer is not
// embedded: its ReadFrom would know no bound.
type boundedBuffer struct {
	buffer bytes.Buffer
	full   bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > maxHelperBytes {
		b.full = true
		return 0, errHelperTooMuch
	}
	return b.buffer.Write(p)
}
