// Package bundle writes and reads the file that carries charts over a gap between networks: an OCI image layout with a
// lock, with the answers that sources gave, and with the bytes that belong to them. It prints nothing and knows no flags.
package bundle

import (
	"errors"
	"fmt"
	"io/fs"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

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
	maxIndex    = 16 << 20
	maxManifest = 16 << 20
	maxLock     = 64 << 20
	maxAnswer   = 40 << 20 // a list of tags is the longest
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

// An Error is a bundle that cannot be read.
type Error struct {
	File string
	Err  error

	altered bool
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Integrity reports that its bytes are not those that were written.
func (e *Error) Integrity() bool { return e.altered }

// Hint says what to do.
func (e *Error) Hint() string {
	var base *baseError
	if errors.As(e.Err, &base) {
		return finding.EarlierBundle
	}
	if errors.Is(e.Err, fs.ErrNotExist) {
		return ""
	}
	if errors.Is(e.Err, errForeign) {
		return finding.WriteBundle
	}
	return "copy the file again, and compare its digest with that of the original"
}

var errForeign = errors.New("not a bundle of helmsrc")

// find returns the manifest of the bundle in an index.
func find(index *ocispec.Index) (ocispec.Descriptor, error) {
	for _, d := range index.Manifests {
		if d.ArtifactType == artifactType {
			return d, nil
		}
	}
	return ocispec.Descriptor{}, errForeign
}
