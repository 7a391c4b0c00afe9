// Command helmsrc resolves, fetches, packages and verifies the Helm charts that
// Flux HelmRepository and HelmChart manifests ask for, without a cluster.
package main

import (
	"os"

	"github.com/helmsrc/helmsrc/cmd"
)

func main() { os.Exit(cmd.Main()) }
