package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

func TestShortRevision(t *testing.T) {
	const hex = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	for _, tt := range []struct{ name, kind, revision, want string }{
		{"branch", sourcev1.GitRepositoryKind, "main@sha1:0123456789abcdef", "0123456789ab"},
		{"commit", sourcev1.GitRepositoryKind, "sha1:0123456789abcdef", "0123456789ab"},
		{"reference", sourcev1.GitRepositoryKind, "refs/heads/main@sha1:0123456789abcdef", "0123456789ab"},
		{"case 55: before digests", sourcev1.GitRepositoryKind, "mock-ref/abcdefg12345678", "abcdefg12345"},
		{"nothing but a name", sourcev1.GitRepositoryKind, "abcdefg12345678", "abcdefg12345"},
		{"short", sourcev1.GitRepositoryKind, "main@sha1:0123", "0123"},
		{"empty", sourcev1.GitRepositoryKind, "", ""},
		{"bucket", sourcev1.BucketKind, "sha256:" + hex, "5891b5b522d5"},
		{"bucket, no digest", sourcev1.BucketKind, "some:thing-else", "some:thing-e"},
		{"bucket, short", sourcev1.BucketKind, "rev", "rev"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shortRevision(tt.kind, tt.revision); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestShortSubject(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"short":                 "short",
		strings.Repeat("ä", 50): strings.Repeat("ä", 50),
		strings.Repeat("ä", 51): strings.Repeat("ä", 50) + "...",
	} {
		if got := shortSubject(in); got != want {
			t.Errorf("shortSubject(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEntryTime(t *testing.T) {
	commit := time.Date(2024, 5, 6, 7, 8, 9, 10, time.FixedZone("", 3600))
	for _, tt := range []struct {
		name   string
		source time.Time
		epoch  string
		want   time.Time
	}{
		{"the source's", commit, "1700000000", time.Date(2024, 5, 6, 6, 8, 9, 0, time.UTC)},
		{"the environment's", time.Time{}, "1700000000", time.Unix(1700000000, 0).UTC()},
		{"none", time.Time{}, "", time.Time{}},
		{"not a number", time.Time{}, "yesterday", time.Time{}},
		{"negative", time.Time{}, "-1", time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := entryTime(tt.source, func(string) string { return tt.epoch }); !got.Equal(tt.want) || got.Location() != time.UTC {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestInRoot(t *testing.T) {
	for in, want := range map[string]string{
		"": ".", "/": ".", ".": ".", "a/b/": "a/b", "./a": "a", "/etc/passwd": "etc/passwd", "../../x": "x", "a/../../x": "x",
	} {
		if got := inRoot(in); got != want {
			t.Errorf("inRoot(%q) = %q, want %q", in, got, want)
		}
	}
}

// A source whose artifact is not an archive, or is missing: §12 case 56.
func TestUnpack(t *testing.T) {
	st, err := store.Open(t.TempDir(), store.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	r := Connect(Edges{Now: time.Now}, Options{}).Reconciler(Kinds(), inventory.New(nil), st, Options{})
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	source := &Result{
		Object: &admission.Admitted{Object: &manifest.Object{Kind: sourcev1.GitRepositoryKind, Namespace: "default", Name: "git"}},
		common: commonStatus{artifact: storedGit(t, st, "kind: List\n")},
	}
	source.provider = &gitReconciliation{treeReconciliation: treeReconciliation{reconciliation: &reconciliation{r: r, subject: subject{adm: source.Object}, result: source}}}
	from, err := source.tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = from.files(t.Context())
	if want := "artifact untar error: requires gzip-compressed body"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := status.AsFailure(err).Reason; got != status.Failed {
		t.Errorf("reason %s", got)
	}
	if _, err := r.unpack(t.Context(), "gitrepository/default/git/nothing.tar.gz"); status.AsFailure(err).Reason != status.ReadOperationFailed {
		t.Errorf("got %v", err)
	}
	gone := &Result{Object: &admission.Admitted{Object: &manifest.Object{Kind: sourcev1.GitRepositoryKind, Namespace: "default", Name: "gone"}}}
	if _, err := gone.tree(t.Context()); status.AsFailure(err).Reason != status.NoSourceArtifact {
		t.Errorf("case 53: got %v", err)
	}
}

// storedGit stores an artifact of the GitRepository default/git.
func storedGit(t *testing.T, st *store.Store, content string) *meta.Artifact {
	t.Helper()
	key := store.NewKey(sourcev1.GitRepositoryKind, "default", "git")
	unlock, err := st.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := st.Create(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	stored, err := pending.Commit("artifact.tar.gz", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	return &meta.Artifact{Path: stored.Path, Digest: stored.Digest, Revision: "main@sha1:0123456789abcdef"}
}

// TestFingerprintsOfTrees changes one field of a spec after the other: each makes another artifact of the same revision.
func TestFingerprintsOfTrees(t *testing.T) {
	t.Parallel()
	ignore := "*.md"
	digested := &included{artifact: &meta.Artifact{Digest: "sha256:1"}}
	lists := map[string][]string{
		"GitRepository": {
			gitFingerprint(&sourcev1.GitRepository{}, "r", nil),
			gitFingerprint(&sourcev1.GitRepository{}, "s", nil),
			gitFingerprint(&sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{Ignore: &ignore}}, "r", nil),
			gitFingerprint(&sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{RecurseSubmodules: true}}, "r", nil),
			gitFingerprint(&sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{SparseCheckout: []string{"a"}}}, "r", nil),
			gitFingerprint(&sourcev1.GitRepository{}, "r", []*included{{}}),
			gitFingerprint(&sourcev1.GitRepository{}, "r", []*included{digested}),
			gitFingerprint(&sourcev1.GitRepository{}, "r", []*included{{spec: sourcev1.GitRepositoryInclude{ToPath: "a"}}}),
		},
		"Bucket": {
			bucketFingerprint(&sourcev1.Bucket{}, "r"),
			bucketFingerprint(&sourcev1.Bucket{}, "s"),
			bucketFingerprint(&sourcev1.Bucket{Spec: sourcev1.BucketSpec{Ignore: &ignore}}, "r"),
			bucketFingerprint(&sourcev1.Bucket{Spec: sourcev1.BucketSpec{Prefix: "a"}}, "r"),
		},
		"OCIRepository": {
			ociFingerprint(&sourcev1.OCIRepository{}, "r"),
			ociFingerprint(&sourcev1.OCIRepository{}, "s"),
			ociFingerprint(&sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{Ignore: new(string)}}, "r"),
			ociFingerprint(&sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{LayerSelector: &sourcev1.OCILayerSelector{}}}, "r"),
		},
	}
	for kind, list := range lists {
		for i, fingerprint := range list {
			if first := slices.Index(list, fingerprint); first != i {
				t.Errorf("%s: %d is equal to %d", kind, i, first)
			}
		}
	}
}
