package oci

import (
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/digest"
)

// The kinds of answers that outlive a run. Manifests that are pinned by digest need no request then; lists of tags, and the
// digests of tags, are only for runs that open no connection.
const (
	keptTags     = "tags"
	keptTag      = "tag"
	keptManifest = "manifest"
)

// keptContent is a manifest.
type keptContent struct {
	Content []byte `json:"content"`
}

func (x *exchange) memory() *cache.Memory { return &x.oci.options.Memory }

// reference names a part of the repository.
func (x *exchange) reference(part string) string {
	return x.ref.Registry + "/" + x.ref.Repository + part
}

// rememberedManifest returns a manifest that is pinned by digest.
func (x *exchange) rememberedManifest(d digest.Digest) ([]byte, bool) {
	var kept keptContent
	if !x.memory().Recall(keptManifest, x.reference("@"+d.String()), &kept) {
		return nil, false
	}
	return kept.Content, d.Algorithm().FromBytes(kept.Content) == d
}

// rememberManifest keeps a manifest, and which tag names it.
func (x *exchange) rememberManifest(reference string, content []byte) {
	x.memory().Remember(keptManifest, x.reference("@"+x.digest.String()), keptContent{content})
	if _, err := digest.Parse(reference); err != nil {
		x.rememberTag(reference, x.digest)
	}
}

func (x *exchange) rememberTag(tag string, d digest.Digest) {
	x.memory().Remember(keptTag, x.reference(":"+tag), d)
}

// rememberedTag returns the digest of a tag in the last run that requested it.
func (x *exchange) rememberedTag(tag string) (d digest.Digest, err error) {
	m := x.memory()
	if !m.Recall(keptTag, x.reference(":"+tag), &d) {
		return "", m.Missing("the artifact of tag " + x.reference(":"+tag))
	}
	return digest.Parse(d.String())
}

// rememberedTags is the list of tags of the last run that asked.
func (x *exchange) rememberedTags() (tags []string, err error) {
	m := x.memory()
	if !m.Recall(keptTags, x.reference(""), &tags) {
		return nil, m.Missing("the list of tags of " + x.reference(""))
	}
	return tags, nil
}
