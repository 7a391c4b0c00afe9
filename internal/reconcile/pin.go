package reconcile

import (
	"cmp"

	"github.com/helmsrc/helmsrc/internal/digest"
)

// A Pin identifies the version that an object, or a dependency of a chart, was resolved to. It is
// a plain value: two runs with the same resolution have equal pins, regardless of downloads and
// storage. It contains no credentials. The meaning of its fields depends on Source; a field without
// a meaning is empty.
//
//	            index, directory           registry                        git, bucket
//	Chart       name in the index          name below the repository's URL path in the tree
//	Version     as published               the tag, with "+" instead       of the artifact, with the
//	                                       of "_"                          metadata that Flux adds
//	URL         of the archive             oci://HOST/REPOSITORY:TAG       of the repository, or of
//	                                                                       the bucket
//	Digest      of the archive: the        of the layer with the chart
//	            index's, or that of the
//	            bytes, if they are known
//	Manifest                               of the manifest that the tag
//	                                       named, and that is signed
//	Revision                                                               of the tree
//
// The pin of an OCIRepository has no Chart; its Version is the unchanged tag, "" if spec.ref names a
// digest, and its Revision is that of its artifact. Digest is empty: the layer is selected when it
// is fetched. The pins of GitRepositories and Buckets have a URL and a Revision.
type Pin struct {
	Source   PinSource `json:"source"`
	Chart    string    `json:"chart,omitempty"`
	Version  string    `json:"version,omitempty"`
	URL      string    `json:"url,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	Manifest string    `json:"manifest,omitempty"`
	Revision string    `json:"revision,omitempty"`
}

// PinSource is the kind of source that published a Pin.
type PinSource string

// Kinds of sources.
const (
	PinIndex     PinSource = "index"     // a Helm repository with an index
	PinRegistry  PinSource = "registry"  // an OCI registry
	PinGit       PinSource = "git"       // a Git repository
	PinBucket    PinSource = "bucket"    // an object store
	PinDirectory PinSource = "directory" // a local directory or archive that replaces a source
)

// DependencyPin is a requirement of a chart and the pin that it was resolved to.
type DependencyPin struct {
	Name       string `json:"name"`
	Repository string `json:"repository"` // redacted
	Constraint string `json:"constraint,omitempty"`
	Pin        Pin    `json:"pin"`
}

// Resolution is the published chart that an object resolves to.
type Resolution struct {
	Chart, Constraint, Version string
	URL                        string // redacted
	Digest                     string
}

func (r *Resolution) take(pin Pin) {
	r.Version = cmp.Or(pin.Version, pin.Manifest)
	r.URL, r.Digest = pin.URL, cmp.Or(pin.Manifest, pin.Digest)
}

// knows adds the digest to a pin whose source publishes no digest.
func (pin *Pin) knows(digest string) { pin.Digest = cmp.Or(pin.Digest, digest) }

// publishedDigest returns the digest in an index, "" if it is invalid.
func publishedDigest(text string) string {
	d, err := digest.ParseLoose(text)
	if err != nil {
		return ""
	}
	return d.String()
}
