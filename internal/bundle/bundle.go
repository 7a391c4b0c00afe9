// Package bundle writes and reads the file that carries charts over a gap between networks: an OCI image layout with a
// lock, with the answers that sources gave, and with the bytes that belong to them. It prints nothing and knows no flags.
package bundle

import (
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The media types of a bundle and of its layers.
const (
	artifactType = "application/vnd.helmsrc.bundle.v1"
	lockType     = "application/vnd.helmsrc.lock.v1+yaml"
	answersType  = "application/vnd.helmsrc.answers.v1+jsonl"
	bytesType    = "application/octet-stream"
)

// What is read of a bundle is bounded. A manifest of 20,000 layers has some 4 MiB.
const (
	maxIndex    = 1 << 20
	maxManifest = 16 << 20
	maxLock     = 64 << 20
	maxLine     = 40 << 20 // of the answers, of which a list of tags is the longest
	maxEntries  = 200_000
)

// line is one answer.
type line struct {
	Name string `json:"name"`
	Text any    `json:"answer"`
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
	if errors.Is(e.Err, errForeign) {
		return "'helmsrc bundle' writes the files that --from reads"
	}
	return "copy the file again, and compare its digest with that on the other side"
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
