package project

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/helmsrc/helmsrc/"

// imports lists the packages of the module that each package may import. Data moves in one direction through the program,
// which this table defines. A new package needs a line here and a page in docs/design, except packages for tests and
// measurements, which no line names.
var imports = map[string][]string{
	"internal/conceal":  {},
	"internal/cel":      {},
	"internal/heap":     {},
	"internal/bound":    {"internal/finding"},
	"internal/lock":     {"internal/bound"},
	"internal/lockfile": {"internal/file", "internal/finding", "internal/lock", "internal/rewrite", "internal/work"},
	"internal/diff":     {},
	"internal/plan":     {"internal/diff", "internal/finding"},
	"internal/helm":     {"internal/finding"},
	"internal/file":     {},
	"internal/sops":     {"internal/bound", "internal/finding"},
	"internal/resolve":  {"internal/bound", "internal/finding"},
	"internal/digest":   {},
	"internal/work":     {},
	"internal/operator": {},
	"internal/edit":     {},
	"internal/exit":     {},
	"internal/policy":   {"internal/bound"},
	"internal/marked":   {"internal/edit", "internal/policy"},
	"internal/rewrite":  {"internal/file", "internal/store"},
	"internal/migrate":  {"internal/bound", "internal/conceal", "internal/edit", "internal/marked"},
	"internal/status":   {"internal/finding", "internal/table"},
	"internal/table":    {},
	"internal/outline":  {"internal/table"},
	"internal/overview": {"internal/report", "internal/status", "internal/table"},
	"internal/records":  {"internal/report", "internal/status", "internal/table"},
	"internal/manifest": {"internal/bound", "internal/conceal", "internal/edit", "internal/file", "internal/finding"},

	"internal/kustomize": {"internal/bound", "internal/edit"},
	"internal/config":    {"internal/auth", "internal/bound", "internal/console", "internal/exit", "internal/file", "internal/finding", "internal/records", "internal/report"},

	"internal/admission":   {"internal/finding", "internal/manifest", "internal/operator"},
	"internal/auth":        {"internal/file", "internal/finding", "internal/manifest", "internal/work"},
	"internal/finding":     {"docs"},
	"docs":                 {},
	"internal/generate":    {"internal/bound", "internal/edit", "internal/tree"},
	"internal/resourceset": {"internal/bound", "internal/cel"},
	"internal/chart":       {"internal/bound", "internal/finding", "internal/tree"},
	"internal/index":       {"internal/finding", "internal/resolve"},
	"internal/report":      {"internal/finding", "internal/manifest", "internal/outline", "internal/plan", "internal/table"},
	"internal/store":       {"internal/bound", "internal/digest", "internal/file", "internal/finding", "internal/work"},
	"internal/merge":       {"internal/digest", "internal/store", "internal/work"},
	"internal/render":      {"internal/bound", "internal/cel", "internal/conceal", "internal/file", "internal/finding", "internal/generate", "internal/kustomize", "internal/manifest", "internal/resourceset", "internal/sops", "internal/tree"},
	"internal/tree":        {"internal/digest", "internal/file", "internal/finding"},
	"internal/values":      {"internal/bound", "internal/finding"},
	"internal/verify":      {"internal/auth", "internal/cache", "internal/digest", "internal/fetch", "internal/finding"},
	"internal/fetch":       {"internal/auth", "internal/digest", "internal/file", "internal/finding", "internal/resolve", "internal/tree", "internal/work"},

	"internal/cache": {"internal/digest", "internal/file", "internal/finding"},

	"internal/bundle": {"internal/cache", "internal/chart", "internal/digest", "internal/fetch/oci", "internal/file", "internal/finding", "internal/resolve", "internal/store", "internal/work"},

	"internal/blob": {"internal/cache", "internal/digest", "internal/fetch"},

	"internal/fetch/bucket": {"internal/auth", "internal/cache", "internal/digest", "internal/fetch", "internal/finding", "internal/tree"},
	"internal/fetch/git":    {"internal/auth", "internal/cache", "internal/digest", "internal/fetch", "internal/file", "internal/finding", "internal/tree"},
	"internal/fetch/helmrepo": {
		"internal/auth", "internal/chart", "internal/digest", "internal/fetch", "internal/file", "internal/finding",
		"internal/index", "internal/resolve",
	},
	"internal/fetch/oci": {"internal/auth", "internal/cache", "internal/digest", "internal/fetch", "internal/finding", "internal/resolve"},

	"internal/inventory": {
		"internal/admission", "internal/fetch", "internal/finding", "internal/generate", "internal/manifest", "internal/operator", "internal/store",
		"internal/values", "internal/work",
	},
	"internal/console": {"internal/auth", "internal/conceal", "internal/edit", "internal/finding", "internal/manifest", "internal/table"},
	"internal/credential": {
		"internal/auth", "internal/fetch", "internal/fetch/bucket", "internal/fetch/git", "internal/finding", "internal/manifest",
	},
	"internal/validate": {
		"internal/admission", "internal/auth", "internal/cel", "internal/chart", "internal/credential", "internal/fetch", "internal/fetch/bucket",
		"internal/fetch/helmrepo", "internal/fetch/oci", "internal/finding", "internal/generate", "internal/inventory",
		"internal/manifest", "internal/operator", "internal/resolve", "internal/values", "internal/verify",
	},
	"internal/reconcile": {
		"internal/admission", "internal/auth", "internal/blob", "internal/cache", "internal/chart", "internal/conceal", "internal/credential", "internal/digest",
		"internal/fetch", "internal/fetch/bucket", "internal/fetch/git", "internal/fetch/helmrepo", "internal/fetch/oci",
		"internal/file", "internal/finding", "internal/generate", "internal/index", "internal/inventory", "internal/lock", "internal/manifest",
		"internal/operator", "internal/policy", "internal/resolve", "internal/status", "internal/store", "internal/tree", "internal/validate",
		"internal/values", "internal/verify", "internal/work",
	},
	"internal/load": {
		"internal/admission", "internal/auth", "internal/conceal", "internal/console", "internal/credential", "internal/diff", "internal/edit", "internal/exit", "internal/fetch/git", "internal/finding", "internal/inventory", "internal/manifest", "internal/marked", "internal/reconcile", "internal/render", "internal/rewrite", "internal/store", "internal/validate",
	},
	"internal/trace": {
		"internal/admission", "internal/auth", "internal/console", "internal/inventory", "internal/load", "internal/manifest", "internal/outline", "internal/reconcile", "internal/render", "internal/report", "internal/resolve", "internal/store",
	},
	"internal/session": {
		"internal/admission", "internal/auth", "internal/bundle", "internal/cache", "internal/conceal", "internal/console", "internal/exit", "internal/fetch", "internal/fetch/git", "internal/fetch/oci", "internal/file", "internal/finding", "internal/inventory", "internal/load", "internal/lock", "internal/lockfile", "internal/manifest", "internal/reconcile", "internal/render", "internal/report", "internal/status", "internal/store", "internal/validate", "internal/verify",
	},
	"internal/foresee": {
		"internal/admission", "internal/auth", "internal/conceal", "internal/console", "internal/exit", "internal/fetch/git", "internal/file", "internal/finding", "internal/helm", "internal/inventory", "internal/load", "internal/lock", "internal/manifest", "internal/operator", "internal/plan", "internal/reconcile", "internal/render", "internal/report", "internal/session", "internal/status", "internal/store", "internal/validate", "internal/values",
	},
	"internal/migration": {
		"internal/admission", "internal/console", "internal/digest", "internal/edit", "internal/exit", "internal/file", "internal/finding", "internal/foresee", "internal/inventory", "internal/load", "internal/manifest", "internal/migrate", "internal/plan", "internal/reconcile", "internal/rewrite", "internal/session", "internal/store",
	},
	"internal/update": {
		"internal/admission", "internal/console", "internal/edit", "internal/exit", "internal/file", "internal/finding", "internal/inventory", "internal/load", "internal/manifest", "internal/marked", "internal/policy", "internal/reconcile", "internal/rewrite", "internal/session", "internal/status",
	},
	"internal/locking": {
		"internal/admission", "internal/console", "internal/exit", "internal/file", "internal/finding", "internal/inventory", "internal/load", "internal/lock", "internal/lockfile", "internal/manifest", "internal/reconcile", "internal/report", "internal/session", "internal/store", "internal/validate",
	},
	"internal/judging": {
		"internal/admission", "internal/auth", "internal/chart", "internal/console", "internal/edit", "internal/exit", "internal/file", "internal/finding", "internal/load", "internal/manifest", "internal/marked", "internal/reconcile", "internal/report", "internal/rewrite", "internal/session", "internal/status", "internal/validate",
	},
	"internal/recorded": {
		"internal/console", "internal/exit", "internal/file", "internal/finding", "internal/inventory", "internal/load", "internal/manifest", "internal/merge", "internal/reconcile", "internal/report", "internal/session", "internal/store", "internal/validate",
	},
	"internal/listing": {
		"internal/console", "internal/foresee", "internal/inventory", "internal/manifest", "internal/reconcile", "internal/records", "internal/report", "internal/resolve", "internal/store", "internal/table",
	},
	"internal/publish": {"internal/console", "internal/exit", "internal/file", "internal/finding", "internal/manifest", "internal/report", "internal/rewrite"},
	"cmd": {
		"internal/admission", "internal/auth", "internal/bundle", "internal/cache", "internal/chart", "internal/config", "internal/console", "internal/credential", "internal/digest", "internal/exit", "internal/fetch", "internal/file", "internal/finding", "internal/foresee", "internal/heap", "internal/inventory", "internal/judging", "internal/listing", "internal/load", "internal/lock", "internal/lockfile", "internal/locking", "internal/manifest", "internal/migrate", "internal/migration", "internal/outline", "internal/overview", "internal/plan", "internal/publish", "internal/reconcile", "internal/recorded", "internal/records", "internal/render", "internal/report", "internal/resolve", "internal/rewrite", "internal/session", "internal/status", "internal/store", "internal/table", "internal/trace", "internal/update", "internal/validate", "internal/values",
	},
	"": {"cmd"},
}

// unlinked are packages that must not be in the program: each would make it start later, or larger by megabytes. A prefix that
// ends in a slash matches all packages below it.
var unlinked = map[string]string{
	"helm.sh/helm/v3/pkg/action":                     "brings client-go",
	"helm.sh/helm/v3/pkg/chartutil":                  "brings the types of every Kubernetes API",
	"helm.sh/helm/v3/pkg/cli":                        "brings client-go",
	"helm.sh/helm/v3/pkg/downloader":                 "brings client-go",
	"helm.sh/helm/v3/pkg/engine":                     "16 MB",
	"helm.sh/helm/v3/pkg/getter":                     "brings client-go",
	"helm.sh/helm/v3/pkg/repo":                       "a program of 51 MB that needs 52 MB of memory to start",
	"cloud.google.com/go/storage":                    "17 MB, see docs/design/0014-bucket-clients.md",
	"google.golang.org/api/storage/":                 "2 MB for three requests",
	"github.com/aws/aws-sdk-go-v2/service/ecr":       "tables of all operations, set up at each start, for one operation",
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic": "the same",
	"github.com/apache/arrow-go/":                    "4 MB, of later versions of azblob",
	"k8s.io/apiextensions-apiserver/pkg/apiserver/":  "11 MB, with what it brings; a judge in tests",
	"k8s.io/apiserver/":                              "a judge in tests",
	"k8s.io/component-base/":                         "its metrics make the program start later",
	"github.com/google/cel-go/":                      "a judge in tests",
	"k8s.io/client-go/":                              "we never talk to a cluster",
	"sigs.k8s.io/controller-runtime/":                "we are no controller",
	"github.com/fluxcd/pkg/runtime/":                 "brings client-go; a judge in tests",
	"github.com/fluxcd/cli-utils/":                   "a judge in tests",
	"github.com/distribution/distribution/":          "a server in tests",
	"github.com/rogpeppe/go-internal/":               "for tests",
	"github.com/theupdateframework/go-tuf/client":    "GO-2024-3166, which has no fix",
	"github.com/helmsrc/helmsrc/internal/helmtest":   "for tests",
	"net/http/httptest":                              "for tests",
}

// inherent are exceptions that cost nothing: dependencies of the Flux API types, the templates of -o, and a function without
// imports.
var inherent = []string{
	"github.com/fluxcd/pkg/runtime/transform",
	"sigs.k8s.io/controller-runtime/pkg/scheme",
	"k8s.io/client-go/util/jsonpath",
	"k8s.io/client-go/third_party/forked/golang/template",
}

type listed struct {
	ImportPath string
	Imports    []string
}

// goList runs go list, which knows the files of a build regardless of their names.
func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var list []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// TestImports compares the packages with the table of imports.
func TestImports(t *testing.T) {
	for _, p := range goList(t, "./...") {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, strings.TrimSuffix(module, "/")), "/")
		allowed, ok := imports[name]
		if forTests(name) {
			continue
		}
		if !ok {
			t.Errorf("package %s has no line in the table of imports", name)
			continue
		}
		for _, imported := range p.Imports {
			if rest, ours := strings.CutPrefix(imported, module); ours && !slices.Contains(allowed, rest) {
				t.Errorf("%s may not import %s", cmp.Or(name, "main"), rest)
			}
		}
	}
}

func forTests(name string) bool {
	return name == "bench" || strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "internal/helmtest") || strings.HasSuffix(name, "test")
}

// TestLinked searches the program for packages that it must not contain.
func TestLinked(t *testing.T) {
	for _, p := range goList(t, "-deps", ".") {
		if slices.Contains(inherent, p.ImportPath) {
			continue
		}
		for banned, why := range unlinked {
			if p.ImportPath == banned || strings.HasSuffix(banned, "/") && strings.HasPrefix(p.ImportPath, banned) {
				t.Errorf("%s is linked: %s", p.ImportPath, why)
			}
		}
	}
}
