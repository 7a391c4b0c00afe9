package status_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/helmsrc/helmsrc/internal/status"
)

const repositoryURL = "https://stefanprodan.github.io/podinfo"

func TestEvents(t *testing.T) {
	altered := status.Altered(errors.New("computed digest doesn't match 'sha256:a'"))
	index := func(revision string, reused bool) status.Outcome {
		return status.Outcome{Generation: 1, Stored: status.StoredRevision(revision), Artifact: artifact(revision),
			Reused: reused, Announce: status.FetchedIndex(40898, repositoryURL)}
	}
	packaged := status.Outcome{Stored: build(newRevision, status.Packaged).Stored(), Artifact: artifact(newRevision)}
	afterAltered := index(oldRevision, false)
	afterAltered.Events = []status.Event{altered}
	failed := func(err error) status.Outcome { return status.Outcome{Failure: status.AsFailure(err)} }
	boom := errors.New("boom")
	fetched := "fetched index of size 40.9kB from '" + repositoryURL + "'"
	upToDate := "Normal ArtifactUpToDate artifact up-to-date with remote revision: '5.2.1'"
	tests := []struct {
		name    string
		prev    status.Previous
		outcome status.Outcome
		want    []string
	}{
		{"case 19: first artifact", status.Previous{}, index(oldRevision, false), []string{"Normal NewArtifact " + fetched}},
		{"case 19: new digest", previous(repository)["ready"], index(newRevision, false),
			[]string{"Normal NewArtifact " + fetched}},
		{"case 19: unchanged after failure", previous(repository)["failed with artifact"], index(oldRevision, true),
			[]string{upToDate, "Normal Succeeded " + fetched}},
		{"case 19: full disk before", previous(repository)["disk full"], index(oldRevision, true),
			[]string{upToDate, "Normal Succeeded " + fetched}},
		{"case 13: unchanged", previous(repository)["ready"], index(oldRevision, true), []string{upToDate}},
		{"case 15: altered", previous(repository)["disappeared"], afterAltered, []string{
			"Warning ArtifactVerificationFailed failed to verify integrity of artifact: computed digest doesn't match 'sha256:a'",
			"Normal NewArtifact " + fetched}},
		{"same bytes, new revision", status.Previous{Artifact: &meta.Artifact{Digest: "sha256:5.2.2"}},
			index(newRevision, false), nil},
		{"case 19: failure", previous(repository)["ready"], failed(status.Failed.Wrap(boom)), []string{"Warning Failed boom"}},
		{"case 51: stalled", status.Previous{}, failed(status.UnsupportedSourceKind.Wrap(boom)),
			[]string{"Warning UnsupportedSourceKind failed to get source: boom"}},
		{"case 53: waiting", status.Previous{}, failed(status.NoSource("Bucket", "b", nil)),
			[]string{"Normal NoSourceArtifact no artifact available for Bucket source 'b'"}},
		{"case 61: refused", status.Previous{}, failed(status.ChartVerificationError.Wrap(boom)),
			[]string{"Warning ChartVerificationError chart verification error: boom"}},
		{"chart", previous(chart)["ready"], packaged,
			[]string{"Normal ChartPackageSucceeded packaged 'podinfo' chart with version '5.2.2'"}},
		{"suspended", previous(chart)["ready"], status.Outcome{}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, e := range status.Events(test.prev, test.outcome) {
				typ := "Normal "
				if e.Warning {
					typ = "Warning "
				}
				got = append(got, typ+string(e.Reason)+" "+e.Message)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestFetchedIndex(t *testing.T) {
	for size, want := range map[int64]string{
		0: "size 0B", 999: "size 999B", 1000: "size 1kB", 30_880: "size 30.88kB", 40_898: "size 40.9kB",
		999_999: "size 1000kB", 52_428_800: "size 52.43MB", 1 << 62: "size 4.612EB", -1: "unknown size",
	} {
		if got := status.FetchedIndex(size, "u"); got != "fetched index of "+want+" from 'u'" {
			t.Errorf("case 19: %d: %q", size, got)
		}
	}
}

func TestEventDocument(t *testing.T) {
	object := map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1",
		"kind":       "HelmRepository",
		"metadata": map[string]any{"name": "podinfo", "namespace": "apps", "uid": "u-1", "annotations": map[string]any{
			"event.toolkit.fluxcd.io/team": "a", "kubectl.kubernetes.io/other": "b"}},
	}
	e := status.Event{Reason: "NewArtifact", Message: "fetched", Annotations: map[string]string{"k": "v"}}
	got := e.Document(object, now)
	metadata := got["metadata"].(map[string]any)
	name := metadata["name"].(string)
	if len(name) != len("podinfo.0123456789abcdef") || !strings.HasPrefix(name, "podinfo.") {
		t.Errorf("name %q", name)
	}
	delete(metadata, "name")
	want := map[string]any{
		"apiVersion": "v1",
		"kind":       "Event",
		"metadata": map[string]any{"namespace": "apps",
			"annotations": map[string]any{"k": "v", "event.toolkit.fluxcd.io/team": "a"}},
		"involvedObject": map[string]any{"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository",
			"name": "podinfo", "namespace": "apps", "uid": "u-1"},
		"type": "Normal", "reason": "NewArtifact", "message": "fetched",
		"source": map[string]any{"component": "helmsrc"}, "count": int64(1),
		"firstTimestamp": "2024-05-06T08:08:09Z", "lastTimestamp": "2024-05-06T08:08:09Z",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("document %v, want %v", got, want)
	}
}

func TestEventNames(t *testing.T) {
	object := func(name string) map[string]any {
		return map[string]any{"kind": "HelmChart", "metadata": map[string]any{"name": name}}
	}
	nameOf := func(e status.Event, object map[string]any, at time.Time) string {
		return e.Document(object, at)["metadata"].(map[string]any)["name"].(string)
	}
	e := status.Event{Reason: "Failed", Message: "a", Warning: true}
	base := nameOf(e, object("x"), now)
	if again := nameOf(e, object("x"), now.In(time.FixedZone("", 3600))); again != base {
		t.Errorf("the same event is once %q, once %q", base, again)
	}
	other := e
	other.Message = "b"
	normal := e
	normal.Warning = false
	for _, different := range []string{nameOf(other, object("x"), now), nameOf(normal, object("x"), now),
		nameOf(e, object("y"), now), nameOf(e, object("x"), now.Add(time.Second))} {
		if different == base {
			t.Errorf("two events are named %q", base)
		}
	}
	long := nameOf(e, object(strings.Repeat("a", 235)+".b"+strings.Repeat("c", 16)), now)
	if len(long) > 253 || strings.Contains(long, "..") {
		t.Errorf("long name %q of %d bytes", long, len(long))
	}
	if got := e.Document(object("x"), now)["metadata"].(map[string]any)["namespace"]; got != "default" {
		t.Errorf("namespace %q", got)
	}
}
