package reconcile

import (
	"fmt"
	"testing"
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
