package status_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/helmsrc/helmsrc/internal/status"
)

// TestFoldShapes compares the documents at the end of runs.
func TestFoldShapes(t *testing.T) {
	chartPrev, repositoryPrev := previous(chart), previous(repository)
	unreachable := errors.New("failed to fetch Helm repository index: no route to host")
	noMatch := errors.New("failed to get chart version for remote reference: no 'podinfo' chart with version matching " +
		"'9.*' found")
	unsigned := errors.New("failed to verify oci://h/podinfo:5.2.1: no matching signatures were found")
	tests := []struct {
		name     string
		kind     string
		prev     status.Previous
		outcome  status.Outcome
		observed int64
		want     string
	}{
		{
			name: "case 6: new index", kind: repository,
			outcome:  status.Outcome{Generation: 1, Seen: status.NewIndex("sha256:a"), Stored: status.StoredRevision("sha256:a")},
			observed: 1, want: `
				Ready=True/Succeeded@1 "stored artifact for revision 'sha256:a'"
				ArtifactInStorage=True/Succeeded@1 "stored artifact for revision 'sha256:a'"`,
		},
		{
			name: "case 11: transient failure", kind: repository,
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.Failed.Wrap(unreachable))},
			observed: -1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact"
				Ready=False/Failed@1 "failed to fetch Helm repository index: no route to host"
				FetchFailed=True/Failed@1 "failed to fetch Helm repository index: no route to host"`,
		},
		{
			name: "case 12: scheme", kind: repository,
			outcome: status.Outcome{Generation: 2, Failure: status.AsFailure(
				status.Failed.Stall(errors.New(`failed to construct Helm client: scheme "ftp" not supported`)))},
			observed: 2, want: `
				Stalled=True/Failed@2 "failed to construct Helm client: scheme \"ftp\" not supported"
				Ready=False/Failed@2 "failed to construct Helm client: scheme \"ftp\" not supported"
				FetchFailed=True/Failed@2 "failed to construct Helm client: scheme \"ftp\" not supported"`,
		},
		{
			name: "case 3: bad index while an artifact is there", kind: repository, prev: repositoryPrev["ready"],
			outcome: status.Outcome{Generation: 1,
				Failure: status.AsFailure(status.IndexationFailed.Wrap(errors.New("no API version specified")))},
			observed: 1, want: `
				Reconciling=True/ProgressingWithRetry@1 "reconciliation in progress"
				Ready=False/IndexationFailed@1 "no API version specified"
				ArtifactInStorage=True/Succeeded@1 "stored artifact for revision '5.2.1'"
				FetchFailed=True/IndexationFailed@1 "no API version specified"`,
		},
		{
			name: "new generation fails while an artifact is there", kind: repository, prev: repositoryPrev["ready"],
			outcome:  status.Outcome{Generation: 2, Failure: status.AsFailure(status.Failed.Wrap(unreachable))},
			observed: 1, want: `
				Reconciling=True/ProgressingWithRetry@2 "processing object: new generation 1 -> 2"
				Ready=False/Failed@2 "failed to fetch Helm repository index: no route to host"
				FetchFailed=True/Failed@2 "failed to fetch Helm repository index: no route to host"
				ArtifactInStorage=True/Succeeded@1 "stored artifact for revision '5.2.1'"`,
		},
		{
			name: "case 14: a newer index cannot be stored", kind: repository, prev: repositoryPrev["ready"],
			outcome: status.Outcome{Generation: 1, Seen: status.NewIndex("sha256:b"),
				Failure: status.AsFailure(status.ArchiveOperationFailed.Wrap(errors.New("no space left on device")))},
			observed: 1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact: new index revision 'sha256:b'"
				Ready=False/ArchiveOperationFailed@1 "no space left on device"
				ArtifactInStorage=True/Succeeded@1 "stored artifact for revision '5.2.1'"
				ArtifactOutdated=True/NewRevision@1 "new index revision 'sha256:b'"
				StorageOperationFailed=True/ArchiveOperationFailed@1 "no space left on device"`,
		},
		{
			name: "case 15: disappeared, and upstream is down", kind: repository, prev: repositoryPrev["disappeared"],
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.Failed.Wrap(unreachable))},
			observed: 1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact: disappeared from storage"
				Ready=False/Failed@1 "failed to fetch Helm repository index: no route to host"
				FetchFailed=True/Failed@1 "failed to fetch Helm repository index: no route to host"`,
		},
		{
			name: "a lock that is not free has a condition of its own", kind: repository, prev: repositoryPrev["ready"],
			outcome: status.Outcome{Generation: 1,
				Failure: status.AsFailure(status.AcquireLockFailed.Wrap(errors.New("deadline exceeded")))},
			observed: 1, want: `
				Reconciling=True/ProgressingWithRetry@1 "reconciliation in progress"
				Ready=False/AcquireLockFailed@1 "failed to acquire lock for artifact: deadline exceeded"
				ArtifactInStorage=True/Succeeded@1 "stored artifact for revision '5.2.1'"
				StorageOperationFailed=True/AcquireLockFailed@1 "failed to acquire lock for artifact: deadline exceeded"`,
		},
		{
			name: "full disk, then the stored revision again", kind: repository, prev: repositoryPrev["disk full"],
			outcome:  status.Outcome{Generation: 1, Stored: status.StoredRevision(oldRevision), Reused: true},
			observed: 1, want: `
				Ready=True/Succeeded@1 "stored artifact for revision '5.2.1'"
				ArtifactInStorage=True/Succeeded@1 "stored artifact for revision '5.2.1'"`,
		},
		{
			name: "case 48: chart", kind: chart,
			outcome: status.Outcome{Generation: 1, Seen: build("5.2.1", status.New).Seen(),
				Stored: build("5.2.1", status.Pulled).Stored()},
			observed: 1, want: `
				Ready=True/ChartPullSucceeded@1 "pulled 'podinfo' chart with version '5.2.1'"
				ArtifactInStorage=True/ChartPullSucceeded@1 "pulled 'podinfo' chart with version '5.2.1'"`,
		},
		{
			name: "case 61: verified chart", kind: chart,
			outcome: status.Outcome{Generation: 1, Stored: build("5.2.1", status.Packaged).Stored(),
				Verified: build("5.2.1", status.Packaged).Verified()},
			observed: 1, want: `
				Ready=True/ChartPackageSucceeded@1 "packaged 'podinfo' chart with version '5.2.1'"
				ArtifactInStorage=True/ChartPackageSucceeded@1 "packaged 'podinfo' chart with version '5.2.1'"
				SourceVerified=True/Succeeded@1 "verified signature of version 5.2.1"`,
		},
		{
			name: "case 61: refused signature", kind: chart,
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.ChartVerificationError.Wrap(unsigned))},
			observed: -1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact"
				Ready=False/VerificationError@1 "chart verification error: failed to verify oci://h/podinfo:5.2.1: no matching signatures were found"
				BuildFailed=True/ChartVerificationError@1 "chart verification error: failed to verify oci://h/podinfo:5.2.1: no matching signatures were found"
				SourceVerified=False/VerificationError@1 "chart verification error: failed to verify oci://h/podinfo:5.2.1: no matching signatures were found"`,
		},
		{
			name: "case 63: nothing to verify with", kind: chart,
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.VerificationError.Wrap(errors.New("no keys")))},
			observed: -1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact"
				Ready=False/VerificationError@1 "no keys"
				FetchFailed=True/VerificationError@1 "no keys"
				SourceVerified=False/VerificationError@1 "no keys"`,
		},
		{
			name: "case 64: verification removed", kind: chart, prev: chartPrev["refused"],
			outcome:  status.Outcome{Generation: 2, Stored: build("5.2.1", status.Pulled).Stored(), Unverifiable: true},
			observed: 2, want: `
				Ready=True/ChartPullSucceeded@2 "pulled 'podinfo' chart with version '5.2.1'"
				ArtifactInStorage=True/ChartPullSucceeded@2 "pulled 'podinfo' chart with version '5.2.1'"`,
		},
		{
			name: "case 68: no match stalls", kind: chart, prev: chartPrev["ready"],
			outcome:  status.Outcome{Generation: 3, Failure: status.AsFailure(status.InvalidChartReference.Wrap(noMatch))},
			observed: 3, want: `
				Stalled=True/InvalidChartReference@3 "invalid chart reference: failed to get chart version for remote reference: no 'podinfo' chart with version matching '9.*' found"
				Ready=False/InvalidChartReference@3 "invalid chart reference: failed to get chart version for remote reference: no 'podinfo' chart with version matching '9.*' found"
				FetchFailed=True/InvalidChartReference@3 "invalid chart reference: failed to get chart version for remote reference: no 'podinfo' chart with version matching '9.*' found"
				ArtifactInStorage=True/ChartPullSucceeded@1 "pulled 'podinfo' chart with version '5.2.1'"`,
		},
		{
			name: "case 51: unsupported kind", kind: chart,
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.UnsupportedSourceKind.Wrap(errors.New("x")))},
			observed: 1, want: `
				Stalled=True/UnsupportedSourceKind@1 "failed to get source: x"
				Ready=False/SourceUnavailable@1 "failed to get source: x"
				FetchFailed=True/SourceUnavailable@1 "failed to get source: x"`,
		},
		{
			name: "case 52: values files", kind: chart,
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.ValuesFilesError.Wrap(errors.New("x")))},
			observed: 1, want: `
				Stalled=True/ValuesFilesError@1 "values files merge error: x"
				Ready=False/ValuesFilesError@1 "values files merge error: x"
				BuildFailed=True/ValuesFilesError@1 "values files merge error: x"`,
		},
		{
			name: "case 53: source without artifact", kind: chart,
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.NoSource("GitRepository", "podinfo", nil))},
			observed: -1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact"
				Ready=False/NoSourceArtifact@1 "no artifact available for GitRepository source 'podinfo'"
				FetchFailed=True/NoSourceArtifact@1 "no artifact available for GitRepository source 'podinfo'"`,
		},
		{
			name: "case 65: outdated until the newer chart is stored", kind: chart, prev: chartPrev["disk full"],
			outcome:  status.Outcome{Generation: 1, Failure: status.AsFailure(status.NoSource("GitRepository", "podinfo", nil))},
			observed: 1, want: `
				Reconciling=True/ProgressingWithRetry@1 "reconciliation in progress"
				Ready=False/ArchiveOperationFailed@1 "no space"
				ArtifactInStorage=True/ChartPullSucceeded@1 "pulled 'podinfo' chart with version '5.2.1'"
				ArtifactOutdated=True/NewChart@1 "pulled 'podinfo' chart with version '5.2.2'"
				FetchFailed=True/NoSourceArtifact@1 "no artifact available for GitRepository source 'podinfo'"
				StorageOperationFailed=True/ArchiveOperationFailed@1 "no space"`,
		},
		{
			name: "git: refused signature of a commit", kind: sourcev1.GitRepositoryKind,
			outcome: status.Outcome{Generation: 1,
				Failure: &status.Failure{Type: "SourceVerified", Reason: "InvalidCommitSignature", Message: "unsigned"}},
			observed: -1, want: `
				Reconciling=True/ProgressingWithRetry@1 "building artifact"
				Ready=False/InvalidCommitSignature@1 "unsigned"
				SourceVerified=False/InvalidCommitSignature@1 "unsigned"`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, observed := status.Fold(test.kind, test.prev, test.outcome, now)
			if text := show(got); undent(text) != undent(test.want) {
				t.Errorf("conditions\n%swant%s", text, test.want)
			}
			if observed != test.observed {
				t.Errorf("observedGeneration %d, want %d", observed, test.observed)
			}
		})
	}
}

func undent(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestSummary is case 67: the content of Ready if several conditions are true at once.
func TestSummary(t *testing.T) {
	storage := isTrue("StorageOperationFailed", "S", "storage")
	fetch := isTrue("FetchFailed", "F", "fetch")
	outdated := isTrue("ArtifactOutdated", "O", "outdated")
	inStorage := isTrue("ArtifactInStorage", "A", "stored")
	fail := func(typ string) *status.Failure { return &status.Failure{Type: typ, Reason: "B", Message: "now"} }
	tests := []struct {
		name    string
		prev    []metav1.Condition
		failure *status.Failure
		want    string
	}{
		{"case 67: storage first", []metav1.Condition{storage, fetch, outdated}, fail("BuildFailed"), "S/storage"},
		{"case 67: fetch before stored", []metav1.Condition{inStorage}, fail("FetchFailed"), "B/now"},
		{"case 67: fetch before outdated", []metav1.Condition{outdated, inStorage}, fail("FetchFailed"), "B/now"},
		{"case 67: build before outdated", []metav1.Condition{outdated, inStorage}, fail("BuildFailed"), "B/now"},
		{"case 67: failed check before everything", []metav1.Condition{storage, inStorage}, fail("SourceVerified"), "B/now"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			prev := status.Previous{Conditions: test.prev, ObservedGeneration: 1, Artifact: artifact("a")}
			got, _ := status.Fold(chart, prev, status.Outcome{Generation: 1, Failure: test.failure}, now)
			ready := find(got, "Ready")
			if ready.Status != "False" || ready.Reason+"/"+ready.Message != test.want {
				t.Errorf("Ready=%s/%s/%s, want %s", ready.Status, ready.Reason, ready.Message, test.want)
			}
		})
	}
	got, _ := status.Fold(chart, status.Previous{}, status.Outcome{Generation: 1,
		Stored: &status.Observation{Reason: "A", Message: "stored"}}, now)
	if ready := find(got, "Ready"); ready.Status != "True" || ready.Reason != "A" || ready.Message != "stored" {
		t.Errorf("case 67: only ArtifactInStorage: %+v", ready)
	}
}

func find(conditions []metav1.Condition, typ string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == typ {
			return c
		}
	}
	return metav1.Condition{}
}

// TestFoldTwice: a run without news changes nothing.
func TestFoldTwice(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			o := s.outcome
			prev := after(s.kind, s.prev, o, 1)
			if o.Failure == nil {
				o.Seen, o.Reused = nil, true
			}
			prev = after(s.kind, prev, o, 2) // a new generation is observed only once
			again := after(s.kind, prev, o, 3)
			if !reflect.DeepEqual(prev, again) {
				t.Errorf("was\n%+v\nis\n%+v", prev, again)
			}
		})
	}
}

// after returns the status after the n-th run.
func after(kind string, prev status.Previous, o status.Outcome, n int) status.Previous {
	conditions, observed := status.Fold(kind, prev, o, now.AddDate(0, 0, n))
	next := status.Previous{Conditions: conditions, ObservedGeneration: observed, Artifact: prev.Artifact}
	if prev.Disappeared {
		next.Artifact = nil
	}
	if o.Failure == nil {
		next.Artifact = o.Artifact
	}
	return next
}

// TestFoldLeavesItsInputAlone guards the recorded status, which several goroutines may read.
func TestFoldLeavesItsInputAlone(t *testing.T) {
	for _, s := range scenarios() {
		want, _ := json.Marshal(s.prev)
		status.Fold(s.kind, s.prev, s.outcome, now)
		status.Midway(s.prev, s.outcome, now)
		status.Interrupted(s.prev, 1, now)
		if got, _ := json.Marshal(s.prev); string(got) != string(want) {
			t.Fatalf("%s: changed to %s", s.name, got)
		}
	}
}

func TestTransitionTimes(t *testing.T) {
	unchanged := status.Outcome{Generation: 1, Stored: status.StoredRevision(oldRevision), Artifact: artifact(oldRevision)}
	for name, kept := range map[string]bool{"ready": true, "disappeared": false, "failed with artifact": true} {
		got, _ := status.Fold(repository, previous(repository)[name], unchanged, now)
		if c := find(got, "ArtifactInStorage"); c.LastTransitionTime.Time.Equal(before) != kept {
			t.Errorf("%s: ArtifactInStorage has the time %s", name, c.LastTransitionTime)
		}
		if c := find(got, "Ready"); c.LastTransitionTime.Time.Equal(before) != (name == "ready") {
			t.Errorf("%s: Ready has the time %s", name, c.LastTransitionTime)
		}
	}
	got, _ := status.Fold(repository, status.Previous{}, unchanged, now.Add(999_999_999))
	if at := find(got, "Ready").LastTransitionTime; !at.Time.Equal(now) {
		t.Errorf("time has fractions: %v", at.Time)
	}
}

func TestLongMessage(t *testing.T) {
	for _, char := range []string{"x", "é", "漢"} {
		o := status.Outcome{Generation: 1, Failure: &status.Failure{Type: "FetchFailed", Reason: "Failed",
			Message: strings.Repeat(char, 40_000)}}
		got, _ := status.Fold(repository, status.Previous{}, o, now)
		for _, typ := range []string{"FetchFailed", "Ready"} {
			message := find(got, typ).Message
			if len(message) > 32768 || len(message) < 32768-4 || !strings.HasSuffix(message, char+"...") ||
				!utf8.ValidString(message) {
				t.Errorf("%s: %d bytes, ending in %q", typ, len(message), message[len(message)-10:])
			}
		}
	}
}

// TestKstatus reads every final document of a run with the real kstatus library.
func TestKstatus(t *testing.T) {
	for _, s := range scenarios() {
		conditions, observed := status.Fold(s.kind, s.prev, s.outcome, now)
		want := kstatus.CurrentStatus
		if f := s.outcome.Failure; f != nil && f.Stalled != "" {
			want = kstatus.FailedStatus
		} else if f != nil {
			want = kstatus.InProgressStatus
		}
		checkKstatus(t, s.name, s.outcome.Generation, conditions, observed, want)

		conditions, observed = status.Midway(s.prev, s.outcome, now)
		checkKstatus(t, s.name+", midway", s.outcome.Generation, conditions, observed, kstatus.InProgressStatus)
		conditions, observed = status.Interrupted(s.prev, s.outcome.Generation, now)
		checkKstatus(t, s.name+", interrupted", s.outcome.Generation, conditions, observed, kstatus.InProgressStatus)
	}
}

func checkKstatus(t *testing.T, name string, generation int64, conditions []metav1.Condition, observed int64,
	want kstatus.Status) {
	t.Helper()
	for _, metadata := range []map[string]any{{"name": "x"}, {"name": "x", "generation": generation}} {
		content := map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmChart", "metadata": metadata}
		doc, err := status.Document(content, sourcev1.HelmChartStatus{ObservedGeneration: observed, Conditions: conditions})
		if err != nil {
			t.Fatal(err)
		}
		result, err := kstatus.Compute(&unstructured.Unstructured{Object: doc})
		if err != nil || result.Status != want {
			t.Errorf("%s: kstatus reads %v, %v, want %s, from\n%s", name, result, err, want, show(conditions))
		}
	}
}

func TestMidway(t *testing.T) {
	o := status.Outcome{Generation: 1, Seen: build(newRevision, status.New).Seen()}
	got, observed := status.Midway(previous(chart)["ready"], o, now)
	want := `
		Reconciling=True/Progressing@1 "building artifact: new 'podinfo' chart with version '5.2.2'"
		Ready=Unknown/Progressing@1 "building artifact: new 'podinfo' chart with version '5.2.2'"
		ArtifactInStorage=True/ChartPullSucceeded@1 "pulled 'podinfo' chart with version '5.2.1'"
		ArtifactOutdated=True/NewChart@1 "new 'podinfo' chart with version '5.2.2'"`
	if undent(show(got)) != undent(want) || observed != 1 {
		t.Errorf("case 49: observedGeneration %d, conditions\n%s", observed, show(got))
	}
	if got, _ := status.Midway(previous(chart)["failed with artifact"], o, now); find(got, "FetchFailed").Type != "" {
		t.Errorf("a version was found, but conditions are\n%s", show(got))
	}
	got, observed = status.Midway(status.Previous{}, o, now)
	want = `
		Reconciling=True/Progressing@1 "building artifact: new 'podinfo' chart with version '5.2.2'"
		Ready=Unknown/Progressing@1 "building artifact: new 'podinfo' chart with version '5.2.2'"`
	if undent(show(got)) != undent(want) || observed != -1 {
		t.Errorf("fresh: observedGeneration %d, conditions\n%s", observed, show(got))
	}
}

func TestInterrupted(t *testing.T) {
	got, observed := status.Interrupted(status.Previous{}, 1, now)
	want := `
		Reconciling=True/ProgressingWithRetry@1 "building artifact"
		Ready=Unknown/ProgressingWithRetry@1 "building artifact"`
	if undent(show(got)) != undent(want) || observed != -1 {
		t.Errorf("observedGeneration %d, conditions\n%s", observed, show(got))
	}
}

func TestReasons(t *testing.T) {
	cause := errors.New("cause")
	for _, test := range []struct {
		reason  status.Reason
		typ     string
		text    string
		stalled bool
	}{
		{status.InvalidChartReference, "FetchFailed", "invalid chart reference: cause", true},
		{status.ChartPullError, "FetchFailed", "chart pull error: cause", false},
		{status.MetadataPatchError, "BuildFailed", "chart metadata patch error: cause", true},
		{status.ValuesFilesError, "BuildFailed", "values files merge error: cause", true},
		{status.DependencyBuildError, "BuildFailed", "dependency build error: cause", false},
		{status.ChartPackageError, "BuildFailed", "chart package error: cause", false},
		{status.ChartVerificationError, "BuildFailed", "chart verification error: cause", false},
		{status.Unknown, "FetchFailed", "unknown build error: cause", false},
		{status.AuthenticationFailed, "FetchFailed", "cause", false},
		{status.URLInvalid, "FetchFailed", "cause", true},
		{status.DirectoryCreationFailed, "StorageOperationFailed", "failed to create artifact directory: cause", false},
		{status.AcquireLockFailed, "StorageOperationFailed", "failed to acquire lock for artifact: cause", false},
		{status.ArchiveOperationFailed, "StorageOperationFailed", "cause", false},
		{"NeverHeardOf", "FetchFailed", "cause", false},
	} {
		err := test.reason.Wrap(cause)
		f := status.AsFailure(err)
		if f.Type != test.typ || f.Reason != test.reason || err.Error() != test.text || (f.Stalled != "") != test.stalled {
			t.Errorf("%s: %+v", test.reason, f)
		}
		if !errors.Is(err, cause) {
			t.Errorf("%s hides its cause", test.reason)
		}
	}
	if err := status.ChartPullError.Wrap(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
	if err := status.ChartPullError.Stall(nil); err != nil {
		t.Errorf("nil became %v", err)
	}
	if f := status.AsFailure(nil); f != nil {
		t.Errorf("nil became %+v", f)
	}
	if f := status.AsFailure(cause); f.Reason != status.Unknown || f.Message != "unknown build error: cause" {
		t.Errorf("unclassified: %+v", f)
	}
	if f := status.AsFailure(status.NoSource("Bucket", "b", status.Failed.Wrap(cause))); f.Reason != status.NoSourceArtifact ||
		!errors.Is(f, cause) {
		t.Errorf("outermost failure: %+v", f)
	}
}

func TestSummaries(t *testing.T) {
	for _, test := range []struct {
		build status.Build
		want  string
	}{
		{status.Build{Name: "chart", Version: "1.2.3-rc.1+bd6bf40"}, "new 'chart' chart with version '1.2.3-rc.1+bd6bf40'"},
		{status.Build{Name: "chart", Version: "arbitrary-version", Stage: status.Pulled},
			"pulled 'chart' chart with version 'arbitrary-version'"},
		{status.Build{Name: "chart", Version: "1.0.0", Stage: status.Packaged, ValuesFiles: []string{"a.yaml", "b.yaml"}},
			"packaged 'chart' chart with version '1.0.0' and merged values files [a.yaml b.yaml]"},
		{status.Build{}, "no chart build"},
	} {
		if got := test.build.Summary(); got != test.want {
			t.Errorf("case 66: %q, want %q", got, test.want)
		}
	}
}

func TestLastHandledReconcileAt(t *testing.T) {
	requested := map[string]string{meta.ReconcileRequestAnnotation: "1644759954"}
	if got := status.LastHandledReconcileAt(requested, "1"); got != "1644759954" {
		t.Errorf("case 69: requested: %q", got)
	}
	if got := status.LastHandledReconcileAt(nil, "1"); got != "1" {
		t.Errorf("case 69: not requested: %q", got)
	}
}
