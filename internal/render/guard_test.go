package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestGuardTime leaves a build to itself that has no end. The context of the renderer ends with the same error.
func TestGuardTime(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	g := newGuard(end)
	g.took(buildTime)
	forever := make(chan struct{})
	defer close(forever)
	_, err := guarded(ctx, g, "apps/kustomization.yaml", func() (int, error) {
		<-forever
		return 0, nil
	})
	exhausted, ok := errors.AsType[*exhaustedError](err)
	if !ok || exhausted.Error() != "apps/kustomization.yaml: the kustomize build was given up: it needs more than 8s" {
		t.Errorf("error %v", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, err) || !errors.Is(g.failure(), err) {
		t.Errorf("ended by %v, failure %v", cause, g.failure())
	}
}

// TestGuardKeeps counts what all builds of a run leave, in proportion to what they read.
func TestGuardKeeps(t *testing.T) {
	for _, test := range []struct {
		read, weight int
		ok           bool
	}{{0, buildMemory, true}, {0, buildMemory + 1, false}, {100, buildMemory + 100*buildShare, true}, {100, buildMemory + 101*buildShare, false}} {
		g := newGuard(func(error) {})
		g.reads("a", test.read)
		g.reads("a", test.read) // the same file
		half := int64(test.weight / 2)
		err := errors.Join(g.keeps("a", half), g.keeps("b", int64(test.weight)-half))
		if (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestOrdinaryCopies accepts what people write, however much of it there is.
func TestOrdinaryCopies(t *testing.T) {
	replacement := func(from, kind, to, options string) string {
		return fmt.Sprintf("- source: {kind: ConfigMap, name: settings, fieldPath: %s}\n  targets: [{select: {kind: %s}, fieldPaths: [%s], options: %s}]\n", from, kind, to, options)
	}
	for name, fields := range map[string]string{
		"settings":        "replacements:\n" + strings.Repeat(replacement("data.domain", "HelmRepository", "spec.url", "{delimiter: '/', index: 2}"), 200),
		"one to the next": "replacements:\n" + replacement("data.domain", "ConfigMap", "data.host", "{}") + replacement("data.host", "HelmRepository", "spec.url", "{delimiter: '/', index: 2}"),
		"swapped":         "replacements:\n" + strings.Repeat(replacement("data.domain", "ConfigMap", "data.host", "{}")+replacement("data.host", "ConfigMap", "data.domain", "{}"), 100),
		"copies": "patches:\n- target: {kind: ConfigMap}\n  patch: |\n" + strings.Repeat(
			"    - {op: copy, from: /data/host, path: /data/name}\n    - {op: move, from: /data/name, path: /data/other}\n", 50),
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{
			"kustomization.yaml": "resources: [repo.yaml, settings.yaml]\n" + fields, "repo.yaml": fmt.Sprintf(aRepository, "a"),
			"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: apps}\ndata: {domain: example.org, host: a}\n",
		})
		if set, _, errs := load(t.Context(), dir, Options{}); len(errs) > 0 || len(names(set)) == 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
