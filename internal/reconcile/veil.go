package reconcile

import (
	"encoding/json"
	"strings"

	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
)

// archiveFile is what the archive of a chart is called in the artifacts directory: by its name and version, unless these
// are made of what came from a Secret.
func (p *reconciliation) archiveFile(build status.Build) string {
	name := archiveName(build)
	stem := strings.TrimSuffix(name, ".tgz")
	return p.adm.Object.Veil(stem) + strings.TrimPrefix(name, stem)
}

// isVeiled reports whether a name in a status is another one, or what it is called there.
func (p *reconciliation) isVeiled(recorded, name string) bool {
	return recorded == name || recorded == p.adm.Object.Veil(name)
}

// unveiled is a recorded status with the names that are known from the object.
func unveiled(obj *manifest.Object, text []byte) ([]byte, error) {
	if !obj.Tainted() {
		return text, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(obj.UnveilStatus(fields))
}
