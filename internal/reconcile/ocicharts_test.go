package reconcile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// TestAnnotationsOf: the publisher of a manifest cannot set its signer.
func TestAnnotationsOf(t *testing.T) {
	got := annotationsOf(map[string]string{
		"org.opencontainers.image.title":  "podinfo",
		"org.opencontainers.image.source": "https://u:canary@git.test/podinfo?token=canary",
		metadataSignedBy:                  "somebody@example.org",
		metadataTime:                      "1999-01-01T00:00:00Z",
	})
	want := "map[org.opencontainers.image.source:https://u:REDACTED@git.test/podinfo?token=REDACTED org.opencontainers.image.title:podinfo]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if got := annotationsOf(map[string]string{metadataTag: "x"}); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestAnnouncement names the origin of an artifact only if both annotations are there.
func TestAnnouncement(t *testing.T) {
	t.Parallel()
	obj := &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{URL: "oci://registry.test/apps/podinfo"}}
	const text = "stored artifact with revision '1.0.0@sha256:1' from 'oci://registry.test/apps/podinfo'"
	for _, tt := range []struct{ source, revision, want string }{
		{"", "", text},
		{"https://git.test/podinfo", "", text},
		{"", "v1.0.0", text},
		{"https://git.test/podinfo", "v1.0.0", text + ", origin source 'https://git.test/podinfo', origin revision 'v1.0.0'"},
		{"https://git.test/podinfo", strings.Repeat("v", maxOrigin), text},
	} {
		artifact := &meta.Artifact{Revision: "1.0.0@sha256:1", Metadata: map[string]string{annotationSource: tt.source, annotationRevision: tt.revision}}
		if got := announcement(artifact, obj); got != tt.want {
			t.Errorf("%q, %.20q: %s", tt.source, tt.revision, got)
		}
	}
}
