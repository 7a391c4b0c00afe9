package reconcile

import (
	"path"

	"github.com/helmsrc/helmsrc/internal/status"
)

// archiveName is the file name of a built chart. Of a name with slashes it takes
// the last element; that nothing from outside becomes another file's name is the
// store's business.
func archiveName(build status.Build) string {
	return path.Base(build.Name) + "-" + build.Version + ".tgz"
}
