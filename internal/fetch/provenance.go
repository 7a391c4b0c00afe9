package fetch

import (
	"fmt"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A chart's provenance file is called as its archive, with this after it.
const ProvenanceSuffix = ".prov"

// MaxProvenanceBytes is far above what a signed Chart.yaml and a hash have.
const MaxProvenanceBytes = 1 << 20

// NoProvenance says that a provenance file is not there. The error matches fs.ErrNotExist.
func NoProvenance(file string) error { return provenanceError(file, finding.Unsigned, fs.ErrNotExist) }

// ProvenanceTooLarge says that a provenance file is too large to be one.
func ProvenanceTooLarge(file string) error {
	return provenanceError(file, "", fmt.Errorf("size exceeds '%d' bytes limit", MaxProvenanceBytes))
}

func provenanceError(file string, code finding.Code, err error) error {
	return &finding.Problem{
		Code: code, Class: finding.Untrusted | finding.Lasting, Text: fmt.Sprintf("provenance file '%s': %v", file, err), Err: err,
	}
}
