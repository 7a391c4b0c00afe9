package cmd

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/status"
)

// FuzzDocuments: no line of a document on stdout is a command of the runner, in any format, and YAML and JSON keep their
// meaning.
func FuzzDocuments(f *testing.F) {
	f.Add("::set-output name=a::b", "app")
	f.Add("a\n  ::stop-commands::x\r\t::y\n", "##[add-mask]x")
	f.Add("\ufeff::x::", "::x")
	f.Fuzz(func(t *testing.T, text, name string) {
		doc := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "annotations": map[string]any{text: text}},
			"data": map[string]any{"list": []any{text, name}, name: text},
		}
		for _, format := range status.Formats() {
			var plain, logged bytes.Buffer
			encode(t, &plain, format, doc)
			log := console.NewRunnerLog(&logged)
			encode(t, log, format, doc)
			if err := log.Close(); err != nil {
				t.Fatalf("%s of %q and %q: %v", format, text, name, err)
			}
			for _, line := range strings.FieldsFunc(logged.String(), func(r rune) bool { return r == '\n' || r == '\r' }) {
				if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(line, "\ufeff")), "::") || strings.Contains(line, "##[") {
					t.Errorf("%s has %q", format, line)
				}
			}
			if format != status.YAML && format != status.JSON && format != status.JSONL {
				continue
			}
			var want, got any
			if err := yaml.Unmarshal(plain.Bytes(), &want); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(logged.Bytes(), &got); err != nil || !reflect.DeepEqual(want, got) {
				t.Errorf("%s of %q and %q: %v\n%s", format, text, name, err, logged.String())
			}
		}
	})
}

func encode(t *testing.T, w io.Writer, format status.Format, doc map[string]any) {
	t.Helper()
	encoder, err := status.NewEncoder(w, format, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(encoder.Encode(doc), encoder.Close()); err != nil {
		t.Fatal(err)
	}
}
