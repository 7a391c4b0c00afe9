package fetch

import (
	"context"
	"net"
	"strings"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// An OfflineError reports that a run without connections misses something that has to be downloaded.
type OfflineError struct {
	What string // "the index of https://…"
	// Command is the command that would download it, "" if that is not known.
	Command string
	// Bundle is the name of the file that was looked in, "" for the cache.
	Bundle string
}

func (e *OfflineError) Error() string {
	if e.Bundle != "" {
		return e.What + " is not in " + e.Bundle + finding.FromBundle
	}
	return e.What + finding.NotCached
}

// Address returns the URL of the missing source, or "".
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

// Finding returns [finding.Offline].
func (*OfflineError) Finding() finding.Code { return finding.Offline }

// Transient is false: the next run would open no connection either.
func (*OfflineError) Transient() bool { return false }

// Hint names the command.
func (e *OfflineError) Hint() string {
	if e.Bundle != "" {
		return finding.AnotherBundle
	}
	if e.Command == "" {
		return finding.OnceOnline
	}
	return "run this once with a network: " + e.Command
}

// RefuseDial opens no connection. It takes the place of [Config.Dial].
func RefuseDial(_ context.Context, _, addr string) (net.Conn, error) {
	return nil, &OfflineError{What: "the answer of " + addr}
}
