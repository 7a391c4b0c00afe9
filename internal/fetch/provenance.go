package fetch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// A chart's provenance file is called as its archive, with this after it.
const ProvenanceSuffix = ".prov"

// MaxProvenanceBytes is far above what a signed Chart.yaml and a hash have.
const MaxProvenanceBytes = 1 << 20

// A ProvenanceError reports that a provenance file is not there, or too big to be one. The former matches
// fs.ErrNotExist.
type ProvenanceError struct {
	File string
	Err  error
}

func (e *ProvenanceError) Error() string {
	return fmt.Sprintf("provenance file '%s': %v", e.File, e.Err)
}

// Finding is what is wrong.
func (e *ProvenanceError) Finding() finding.Code {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return finding.Unsigned
	}
	return ""
}

func (e *ProvenanceError) Unwrap() error { return e.Err }

// Integrity is true: what is not signed is not what was asked for.
func (e *ProvenanceError) Integrity() bool { return true }

// Transient is false.
func (e *ProvenanceError) Transient() bool { return false }

var ErrProvenanceSize = fmt.Errorf("size exceeds '%d' bytes limit", MaxProvenanceBytes)
