package reconcile

import (
	"cmp"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"
	"golang.org/x/tools/txtar"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/helmtest"
	"github.com/helmsrc/helmsrc/internal/helmtest/registry"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

func TestMain(m *testing.M) {
	code := m.Run()
	registry.Cleanup()
	os.Exit(code)
}

// world holds real servers on loopback, the manifests that name them, and an artifacts directory.
type world struct {
	*helmtest.World
	dir       string
	inventory *inventory.Inventory // of the last run
	progress  Progress             // of the next runs, nil for silent
}

// edit replaces a text of the file all.yaml.
func (w *world) edit(t *testing.T, before, after string) {
	t.Helper()
	file := filepath.Join(w.dir, "all.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), before) {
		t.Fatalf("%q is not there", before)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), before, after)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newWorld starts a server for each top directory of an archive whose name begins with an underscore, and writes
// the other files.
func newWorld(t *testing.T, archive string) *world {
	t.Helper()
	kit, err := helmtest.NewKit()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{World: helmtest.NewWorld(kit), dir: t.TempDir()}
	w.Kinds["registry"] = registry.Kind
	t.Cleanup(w.Close)
	servers := map[string]bool{}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		file := filepath.Join(w.dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		if top, _, _ := strings.Cut(f.Name, "/"); strings.HasPrefix(top, "_") {
			servers[top] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if err := w.Start(name[1:], filepath.Join(w.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// requests returns the requests to all servers since the last call, each with the name of its server.
func (w *world) requests() []string {
	var all []string
	for name, server := range w.Servers {
		for _, r := range server.Log.Drain() {
			all = append(all, name+" "+r.String())
		}
	}
	slices.Sort(all)
	return all
}

// run reconciles the objects of the file all.yaml and returns their results by KIND/NAME. Runs of one world share its
// artifacts directory.
func (w *world) run(t *testing.T, o Options) map[string]*Result {
	t.Helper()
	return w.runKinds(t, o)
}

// runKinds is run without the objects of the given kinds.
func (w *world) runKinds(t *testing.T, o Options, without ...string) map[string]*Result {
	t.Helper()
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	set, errs := manifest.Load(t.Context(), manifest.Options{Files: []string{filepath.Join(w.dir, "all.yaml")}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	st, err := store.Open(filepath.Join(w.dir, "artifacts"), store.Options{
		Algorithm: godigest.SHA256, RetentionRecords: 2, Kinds: Kinds().Names(), Shared: Kinds().WithoutArtifact(), Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	o.Concurrency = cmp.Or(o.Concurrency, 2)
	o.IndexMax, o.Chart = 1<<20, chart.Limits{Archive: 1 << 20, File: 1 << 20, Unpacked: 1 << 20}
	inv := inventory.New(set)
	connections := Connect(Edges{Dial: w.Network.Dial, Getenv: func(string) string { return "" }, Now: now, UserAgent: "helmsrc/test"}, o)
	r := connections.Reconciler(Kinds(), inv, st, o)
	defer func() {
		if err := errors.Join(r.Close(), connections.Close()); err != nil {
			t.Error(err)
		}
	}()
	var objects []*admission.Admitted
	for _, obj := range inv.Objects() {
		if !Kinds().Supports(obj) || slices.Contains(without, obj.Kind) {
			continue
		}
		adm, err := inv.Admit(obj)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, adm)
	}
	w.inventory = inv
	var progress Progress = silent{}
	if w.progress != nil {
		progress = w.progress
	}
	results, err := r.Run(t.Context(), objects, progress)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Result{}
	for _, result := range results {
		byName[result.Object.Object.Kind+"/"+result.Object.Object.Name] = result
	}
	return byName
}

// silent ignores the progress.
type silent struct{}

func (silent) Started(*admission.Admitted)                     {}
func (silent) Transferred(*admission.Admitted, fetch.Progress) {}
func (silent) Decided(*admission.Admitted, string)             {}
func (silent) Waiting(*admission.Admitted, bool)               {}
func (silent) Finished(*Result)                                {}

// writeRepository writes the content of a Helm repository into a directory.
func (w *world) writeRepository(t *testing.T, server, dir string) {
	t.Helper()
	r, err := helmtest.ReadRepository(filepath.Join(w.dir, "_"+server))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range r {
		file := filepath.Join(w.dir, dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
