//go:build tools

// Package tools keeps in go.mod the API types that the schemas are generated from. No program imports them here: they
// are read as source.
package tools

import (
	_ "github.com/fluxcd/helm-controller/api/v2"
	_ "github.com/fluxcd/image-reflector-controller/api/v1"
	_ "github.com/fluxcd/kustomize-controller/api/v1"
	_ "github.com/fluxcd/source-controller/api/v1"
	_ "github.com/fluxcd/source-watcher/api/v2/v1beta1"
)
