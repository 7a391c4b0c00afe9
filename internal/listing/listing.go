// Package listing makes records of what a run found: versions that were resolved, versions that are published, signatures, and
// the components of bills of materials. What is not shown is left out of them.
package listing

import "github.com/helmsrc/helmsrc/internal/console"

// A Lister makes records. The console knows what is not shown.
type Lister struct{ Console *console.Console }
