package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/helmsrc/helmsrc/internal/exit"
)

// mistaken returns HelmCharts whose versions lack quotes: each in a document, or all in one.
func mistaken(count int, list bool) string {
	var text strings.Builder
	if list {
		text.WriteString("apiVersion: v1\nkind: List\nitems: [")
	}
	for i := range count {
		chart := fmt.Sprintf("{apiVersion: source.toolkit.fluxcd.io/v1, kind: HelmChart, metadata: {name: c%d, namespace: apps}, "+
			"spec: {interval: 5m, chart: app, version: 6.1, sourceRef: {kind: HelmRepository, name: repo}}}", i)
		if list {
			text.WriteString(chart + ", ")
		} else {
			text.WriteString("---\n" + chart + "\n")
		}
	}
	if list {
		text.WriteString("]\n")
	}
	return text.String()
}

// TestRemediesAreLinear compares the memory for few and for four times as many findings of a file: each file is parsed once.
func TestRemediesAreLinear(t *testing.T) {
	for _, list := range []bool{false, true} {
		t.Run(fmt.Sprintf("list=%t", list), func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "charts.yaml")
			allocated := func(count int) uint64 {
				if err := os.WriteFile(name, []byte(mistaken(count, list)), 0o600); err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, _, log := run(t, "validate", "-f", name, "--fix")
				runtime.ReadMemStats(&after)
				if text, err := os.ReadFile(name); err != nil || strings.Count(string(text), `"6.1"`) != count {
					t.Fatalf("not all are fixed: %v\n%.500s", err, log)
				}
				return after.TotalAlloc - before.TotalAlloc
			}
			few, many := allocated(100), allocated(400)
			if many > 6*few {
				t.Errorf("%d bytes for 100 findings, %d for 400", few, many)
			}
		})
	}
}

// TestValidateIsInterrupted ends the context during the read: the run ends with 130, reports the reason, and edits no file.
func TestValidateIsInterrupted(t *testing.T) {
	name := filepath.Join(t.TempDir(), "charts.yaml")
	if err := os.WriteFile(name, []byte(mistaken(3, false)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var log bytes.Buffer
	code := Run(ctx, &Env{
		Args: []string{"validate", "-f", name, "-f", "-", "--fix"}, Stdin: interrupting{cancel}, Stdout: &log, Stderr: &log,
		Terminal: func() (int, int, bool) { return 0, 0, false },
		Getenv:   func(string) string { return "" },
		Now:      func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Program:  "helmsrc",
	})
	if code != exit.Interrupted || !strings.Contains(log.String(), "error: cannot read the input: interrupted") {
		t.Errorf("exit code %d\n%s", code, &log)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != mistaken(3, false) {
		t.Errorf("the file was edited: %v\n%s", err, text)
	}
}

// interrupting ends the run that reads it.
type interrupting struct{ cancel context.CancelCauseFunc }

func (r interrupting) Read([]byte) (int, error) {
	r.cancel(exit.ErrInterrupted)
	return 0, io.EOF
}
