package program

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/cmd"
	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// TestUnresolved reads sources of every kind on hosts that do not resolve: each host is looked up once, and all sources have
// the same error.
func TestUnresolved(t *testing.T) {
	t.Parallel()
	spec := map[string]string{
		"HelmRepository": `url: "https://helm.test/%d"`,
		"OCIRepository":  `url: "oci://oci.test/%d", ref: {tag: v1}`,
		"GitRepository":  `url: "https://git.test/%d"`,
		"Bucket":         `endpoint: "bucket.test", bucketName: "bucket-%d"`,
	}
	var manifests strings.Builder
	for kind, fields := range spec {
		for i := range 3 {
			fmt.Fprintf(&manifests, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: %s\nmetadata: {name: s%d}\nspec: {interval: 5m, "+fields+"}\n", kind, i, i)
		}
	}
	manifests.WriteString("---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: port}\n" +
		"spec: {interval: 5m, url: \"https://git.test:8443/port\"}\n")
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(manifests.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	network := helmtest.NewNetwork()
	lookedUp := map[string]int{}
	var stdout, stderr bytes.Buffer
	code := cmd.Run(t.Context(), &cmd.Env{
		Args:  []string{"fetch", "-f", file, "-d", t.TempDir(), "--no-cache", "--retries", "0", "-j", "1", "-o", "jsonl"},
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Terminal: func() (int, int, bool) { return 0, 0, false }, Getenv: func(string) string { return "" },
		Now: time.Now, Program: "helmsrc",
		Dial: func(ctx context.Context, kind, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			lookedUp[host]++
			return network.Dial(ctx, kind, addr)
		},
	})
	if want := map[string]int{"helm.test": 1, "oci.test": 1, "git.test": 1, "bucket.test": 1}; !maps.Equal(lookedUp, want) {
		t.Errorf("look-ups %v, want %v", lookedUp, want)
	}
	if code != 5 || strings.Count(stdout.String(), "no such host") < 13 {
		t.Errorf("exit code %d\n%s\n%s", code, &stdout, &stderr)
	}
}
