package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	childDir  = "HELMSRC_STORE_TEST_DIR"
	childSeed = "HELMSRC_STORE_TEST_SEED"
)

// runChild plays the part in a process of its own and returns its exit code.
func runChild(part string) int {
	parts := map[string]func(s *Store) error{
		"store":      storeForEver,
		"count":      countUp,
		"hold":       holdLock,
		"book":       writeShared,
		"full":       fillDisk,
		"unwritable": writeNowhere,
	}
	o := testOptions()
	o.Now = time.Now
	o.Shared = []string{"HelmRelease"}
	s, err := Open(os.Getenv(childDir), o)
	if err == nil {
		err = parts[part](s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child prepares a process that plays the part in the directory.
func child(t *testing.T, part, dir string, seed int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childVariable+"="+part, childDir+"="+dir, childSeed+"="+strconv.Itoa(seed))
	cmd.Stderr = t.Output()
	return cmd
}

// storeForEver stores one artifact after the other, every third time under a name that is there already, and writes
// a byte to stdout after every step.
func storeForEver(s *Store) error {
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for {
		if err := storeOnce(s, r); err != nil {
			return err
		}
	}
}

func step() { _, _ = os.Stdout.Write([]byte{'.'}) }

func storeOnce(s *Store, r *rand.Rand) error {
	unlock, err := s.Lock(context.Background(), chartKey)
	if err != nil {
		return err
	}
	defer unlock()
	p, err := s.Create(chartKey)
	if err != nil {
		return err
	}
	content := selfChecking(r)
	for chunk := range bytesInChunks(content, len(content)/3+1) {
		if _, err := p.Write(chunk); err != nil {
			return err
		}
		step()
	}
	file := "x-1.0.0.tgz"
	if r.IntN(3) > 0 {
		file = fmt.Sprintf("x-%d.tgz", r.Uint32())
	}
	a, err := p.Commit(file, LinkLatest)
	if err != nil {
		return err
	}
	step()
	status, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if err := s.Remember(chartKey, &Record{Status: status}, nil); err != nil {
		return err
	}
	step()
	_, err = s.Collect(chartKey, a.Path)
	return err
}

func bytesInChunks(b []byte, n int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

// selfChecking returns content that starts with the digest of the rest.
func selfChecking(r *rand.Rand) []byte {
	rest := bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(100_000))
	rest = strconv.AppendUint(rest, r.Uint64(), 10)
	sum := sha256.Sum256(rest)
	return append([]byte(hex.EncodeToString(sum[:])), rest...)
}

func isWhole(content []byte) bool {
	if len(content) < 2*sha256.Size {
		return false
	}
	sum := sha256.Sum256(content[2*sha256.Size:])
	return hex.EncodeToString(sum[:]) == string(content[:2*sha256.Size])
}

// A process that is killed at any moment leaves the previous artifact or the new one, whole, with a link that leads to
// one of them and a record of one of them; and the next process tidies up.
func TestKill(t *testing.T) {
	const rounds = 60
	dir := filepath.Join(t.TempDir(), "artifacts")
	r := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		killAfter(t, child(t, "store", dir, round), 1+r.IntN(40))
		checkKilled(t, dir)
		if t.Failed() {
			t.Fatalf("after round %d: %q", round, files(t, dir))
		}
	}
}

// killAfter kills the process once it has made some steps; where exactly it is then is chance.
func killAfter(t *testing.T, cmd *exec.Cmd, steps int) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, out, int64(steps)); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("the process was not killed: %v", err)
	}
}

func checkKilled(t *testing.T, dir string) {
	t.Helper()
	objectDir := filepath.Join(dir, "helmchart", "apps", "podinfo")
	for _, name := range files(t, objectDir) {
		if strings.HasPrefix(name, tempPrefix) {
			continue
		}
		file, target, isLink := strings.Cut(name, " -> ")
		data, err := os.ReadFile(filepath.Join(objectDir, file))
		if err != nil || !isWhole(data) {
			t.Errorf("%s (link: %v, %s) is not whole: %d bytes, %v", file, isLink, target, len(data), err)
		}
	}
	s := openStore(t, dir, testOptions())
	checkMemory(t, s)
	lock(t, s, chartKey)()
	for _, name := range files(t, dir) {
		if strings.Contains(name, tempPrefix) || strings.HasSuffix(name, tempSuffix) {
			t.Errorf("%s is left", name)
		}
	}
	checkMemory(t, s)
}

func checkMemory(t *testing.T, s *Store) {
	t.Helper()
	record, err := s.Recall(chartKey)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	var a Artifact
	if err := json.Unmarshal(record.Status, &a); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), a.Path)); err != nil {
		t.Errorf("a remembered artifact is gone: %v", err)
	}
	// A version published twice may have been replaced, but then that is known.
	if err := s.Verify(a.Path, a.Digest); err != nil && !strings.Contains(err.Error(), "by a run that did not finish") {
		t.Error(err)
	}
}

const counts = 25

// countUp increments a number in a file, which goes wrong at once if two processes do it at a time.
func countUp(s *Store) error {
	for range counts {
		if err := countOnce(s); err != nil {
			return err
		}
	}
	return nil
}

func countOnce(s *Store) error {
	unlock, err := s.Lock(context.Background(), chartKey)
	if err != nil {
		return err
	}
	counter := filepath.Join(s.Dir(), "counter")
	data, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(data))
	if err != nil {
		return err
	}
	if err := os.WriteFile(counter, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	// Every other time the lock file itself goes, as in a prune.
	if n%2 == 0 {
		root, err := s.existing()
		if err != nil {
			return err
		}
		key, err := chartKey.checked()
		if err != nil {
			return err
		}
		if err := root.Remove(key.lock()); err != nil {
			return err
		}
		removeEmpty(root.root, filepath.ToSlash(filepath.Dir(key.lock())), stateDir)
	}
	return unlock()
}

func TestLockBetweenProcesses(t *testing.T) {
	const processes = 3
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "counter"), []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var running []*exec.Cmd
	for range processes {
		cmd := child(t, "count", dir, 0)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "counter"))
	if want := strconv.Itoa(processes * counts); string(got) != want || err != nil {
		t.Errorf("counted to %s, want %s, %v", got, want, err)
	}
}

// holdLock holds the lock until its input ends, and then ends without giving it up.
func holdLock(s *Store) error {
	if _, err := s.Lock(context.Background(), chartKey); err != nil {
		return err
	}
	fmt.Println("locked")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func TestLockOfOtherProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold", dir, 0)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	s := openStore(t, dir, testOptions())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx, chartKey); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	lock(t, s, chartKey)()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
