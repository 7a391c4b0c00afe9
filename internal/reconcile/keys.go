package reconcile

import (
	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/store"
)

func keyOf(adm *admission.Admitted) store.Key {
	return store.NewKey(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name)
}

// chartKey names a chart, or a version of it, in a registry.
type chartKey struct{ repository, chart, tag string }

// schemeKey names a registry, and the settings that it is asked with.
type schemeKey struct{ host, settings string }

// signatureKey names what is verified, and against what: the same question is
// asked once per run.
type signatureKey struct{ chart, against string }

// pinnedTag is what a tag names for the rest of the run.
type pinnedTag struct {
	digest   digest.Digest
	artifact *oci.Artifact // nil if only the digest was asked for
}
