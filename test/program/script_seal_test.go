package program

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/helmsrc/helmsrc/internal/helmtest"
)

// cmdSeal encrypts the document in a file as SOPS does, for the identity in SOPS_AGE_KEY: the values of the fields whose
// name matches.
func cmdSeal(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "seal REGEX FILE")
	file := ts.MkAbs(args[1])
	text, err := os.ReadFile(file)
	ts.Check(err)
	sealed, err := helmtest.Seal(text, args[0], ts.Getenv("SOPS_AGE_KEY"))
	ts.Check(err)
	ts.Check(os.WriteFile(file, sealed, 0o600))
}
