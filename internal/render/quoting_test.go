package render

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/kustomize"
)

// TestQuoting builds directories that kustomize refuses, and checks that errors do not quote secrets.
func TestQuoting(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"environment": {
			"kustomization.yaml": "secretGenerator:\n- {name: a, envs: [login.env]}\n",
			"login.env":          "A=1\nPASSWORD=hunter2\xff\n",
		},
		"literal": {"kustomization.yaml": "secretGenerator:\n- {name: a, literals: [hunter2]}\n"},
		"JSON patch": {
			"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n    - {op: hunter2, path: /data/password, value: hunter2}\n",
			"a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {password: hunter2}\n",
		},
		"JSON patch on one line": {
			"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap, name: '((a{100}){100}){100}'}\n  patch: '[{op: add, path: /data/password, value: hunter2}]'\n",
			"a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		},
		"JSON patch of a map": {
			"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap, name: '('}\n  patch: '[{op: add, path: /passwords/a, value: {b: hunter2}}]'\n",
			"a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		},
		"merge on one line": {
			"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {name: '('}\n  patch: '{apiVersion: v1, kind: Secret, metadata: {name: b}, stringData: {any: hunter2}}'\n",
			"a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		},
		"merge": {
			"kustomization.yaml": "resources: [a.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Secret\n    metadata: {name: b}\n    stringData: {any: hunter2}\n",
			"a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := absolute(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &repository{ctx: t.Context(), root: dir, display: func(p string) string { return p }, disk: newDisk(), dirs: map[string]*directory{}, budget: kustomize.NewBudget(func(error) {})}
			d := r.directory(dir)
			err = d.err
			if err == nil {
				var k *types.Kustomization
				if k, err = clone(d.kustomization); err == nil {
					err = r.build(context.Background(), dir, d.file, k, nil).err
				}
			}
			if err == nil {
				t.Fatal("built")
			}
			if errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
		})
	}
}
