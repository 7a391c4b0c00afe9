package action

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPin: the image of a release is made from the base that its tag names on that day, by its digest, if that is signed.
func TestPin(t *testing.T) {
	const pin = "../.ci/release/pin"
	digest := "sha256:" + strings.Repeat("0a", 32)
	start := func(t *testing.T, answer, verdict string) *runner {
		r := newRunner(t)
		sed, err := filepath.EvalSymlinks("/bin/sed")
		r.check(err)
		r.check(os.Symlink(sed, r.dir+"/bin/sed"))
		r.program("docker", "echo "+answer)
		r.program("cosign", verdict)
		return r
	}
	t.Run("pinned", func(t *testing.T) {
		r := start(t, digest, "")
		out := r.runWith(pin, 0, r.dir+"/config.yaml")
		image := "gcr.io/distroless/static-debian12@" + digest
		if out != "BASE_IMAGE="+image+"\n" {
			t.Error(out)
		}
		r.holds(r.read("docker.args"), "gcr.io/distroless/static-debian12:nonroot")
		r.holds(r.read("cosign.args"), "verify\n"+image+"\n")
		before, err := os.ReadFile("../../.goreleaser.yaml")
		r.check(err)
		want := strings.Replace(string(before), "base_image: gcr.io/distroless/static-debian12:nonroot", "base_image: "+image, 1)
		if got := r.read("config.yaml"); got != want || want == string(before) {
			t.Errorf("the configuration is\n%s", got)
		}
	})
	for name, r := range map[string]*runner{
		"no digest":      start(t, "latest", ""),
		"two digests":    start(t, "'"+digest+"|"+digest+"'", ""),
		"another signer": start(t, digest, "exit 1"),
	} {
		t.Run(name, func(*testing.T) {
			r.runWith(pin, 1, r.dir+"/config.yaml")
			if got := r.read("config.yaml"); got != "" {
				t.Errorf("a configuration was written:\n%s", got)
			}
		})
	}
}
