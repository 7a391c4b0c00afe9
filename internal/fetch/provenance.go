package fetch

import (
	"fmt"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A chart's provenance file is called as its archive, with this after it.
const ProvenanceSuffix = ".prov"

// MaxProvenanceBytes is the limit of a provenance file: far more than a signed Chart.yaml and a hash need.
const MaxProvenanceBytes = 1 << 20

// NoProvenance reports that a provenance file is missing. The error matches fs.ErrNotExist.
func NoProvenance(file string) error { return provenanceError(file, finding.Unsigned, fs.ErrNotExist) }

// ProvenanceTooLarge reports that a provenance file exceeds MaxProvenanceBytes.
func ProvenanceTooLarge(file string) error {
	return provenanceError(file, "", fmt.Errorf("size exceeds '%d' bytes limit", MaxProvenanceBytes))
}

func provenanceError(file string, code finding.Code, err error) error {
	return &finding.Problem{
		Code: code, Class: finding.Untrusted | finding.Lasting, Text: fmt.Sprintf("provenance file '%s': %v", file, err), Err: err,
	}
}
