// Package docs has the pages that the program reads itself.
package docs

import _ "embed"

// Findings is the catalogue of findings.
//
//go:embed findings.md
var Findings string
