package fetch

import (
	"context"
	"net"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// An OfflineError reports something that only a connection could have brought, in a run that opens none.
type OfflineError struct {
	What string // "the index of https://…"
	// Command is what would get it, "" if that is not known.
	Command string
	// Bundle is the name of the file that was looked in, "" for the cache.
	Bundle string
}

func (e *OfflineError) Error() string {
	if e.Bundle != "" {
		return e.What + " is not in " + e.Bundle + ", and --from opens no connection"
	}
	return e.What + " is not in the cache, and --offline opens no connection"
}

// Address is the URL of what is missing, "" if there is none.
func (e *OfflineError) Address() string {
	for word := range strings.FieldsSeq(e.What) {
		if strings.Contains(word, "://") {
			return word
		}
		if strings.Contains(word, "/") {
			return "oci://" + word
		}
	}
	return ""
}

// Finding is what is wrong.
func (*OfflineError) Finding() finding.Code { return finding.Offline }

// Transient is false: the next run would open no connection either.
func (*OfflineError) Transient() bool { return false }

// Hint names the command.
func (e *OfflineError) Hint() string {
	if e.Bundle != "" {
		return bundleHint
	}
	if e.Command == "" {
		return "run the same command once without --offline: it keeps what it fetches"
	}
	return "run this once with a network: " + e.Command
}

const bundleHint = "run 'helmsrc bundle' with these manifests on a machine with a network, and copy that file here"

// RefuseDial opens no connection. It takes the place of [Config.Dial].
func RefuseDial(_ context.Context, _, addr string) (net.Conn, error) {
	return nil, &OfflineError{What: "what " + addr + " would answer"}
}
