// Package bundle writes and reads the file that carries charts over a gap between networks: an OCI image layout with a
// lock, with the answers that sources gave, and with the bytes that belong to them. It prints nothing and knows no flags.
package bundle

import (
	"errors"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The media types of a bundle and of its layers.
const (
	artifactType = "application/vnd.helmsrc.bundle.v1"
	lockType     = "application/vnd.helmsrc.lock.v1+yaml"
	answerType   = "application/vnd.helmsrc.answer.v1+json" // its title is the name in the cache
	bytesType    = "application/octet-stream"
	contentsType = "application/vnd.helmsrc.contents.v1" // the digests of what charts have, which are no layers of the bundle
	sinceType    = "application/vnd.helmsrc.since.v1+json"
)

// What is read of a bundle is bounded. A manifest of 20,000 layers has some 4 MiB.
const (
	maxManifest = 16 << 20 // also of the index
	maxLock     = 64 << 20
	maxAnswer   = 40 << 20 // a list of tags is the longest
	maxBytes    = 4 << 30  // one archive, layer or pack: none that is fetched is as large
	maxEntries  = 200_000
)

// A Base is an earlier bundle, of which the other side has all. The zero value stands for no bundle.
type Base struct {
	Bundle digest.Digest          // of its manifest
	has    map[digest.Digest]bool // the layers
}

// since is the configuration of a bundle that stands on another one.
type since struct {
	Bundle digest.Digest   `json:"bundle"`
	Lacks  []digest.Digest `json:"lacks"` // the layers that only that one has
}

var errForeign = finding.WithHint(errors.New("not a bundle of helmsrc"), finding.WriteBundle)

// problem is why the bundle of a name cannot be read, and what to do.
func problem(name string, err error) error {
	p := &finding.Problem{Text: name + ": " + err.Error(), Err: err}
	if len(finding.Hints(err)) == 0 && !errors.Is(err, fs.ErrNotExist) {
		p.Advice = "copy the file again, and compare its digest with that of the original"
	}
	if _, altered := errors.AsType[*digest.MismatchError](err); altered {
		p.Class = finding.Untrusted
	}
	return p
}
