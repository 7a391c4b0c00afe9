// Package listing makes records of the results of a run: resolved versions, published versions, signatures, and the components
// of bills of materials. It leaves out values that are not shown.
package listing

import "github.com/helmsrc/helmsrc/internal/console"

// A Lister makes records. The console holds the values that are not shown.
type Lister struct{ Console *console.Console }
