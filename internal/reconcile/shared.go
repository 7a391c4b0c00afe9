package reconcile

import (
	"errors"
	"net"
	"net/url"

	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Cause is equal for failures that are one server's: it cannot be reached, or answers nothing that was asked for. It is empty for a
// failure that may be the object's own.
func (r *Result) cause() string {
	code := CodeOf(r.Failure)
	switch code {
	case finding.Unreachable, finding.Certificate, finding.TimedOut, finding.ServerError:
	default:
		return ""
	}
	host := hostOf(r.Failure)
	if host == "" {
		return ""
	}
	return string(code) + " " + r.Object.Object.Kind + " " + host + " " + innermost(r.Failure)
}

// innermost is the text of the error that the others are about, which names no object.
func innermost(err error) string {
	if answer, ok := errors.AsType[*fetch.StatusError](err); ok {
		return answer.Status
	}
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// hostOf is the server that a failure is about, "" if it does not say.
func hostOf(err error) string {
	address := ""
	if answer, ok := errors.AsType[*fetch.StatusError](err); ok {
		address = answer.URL
	} else if request, ok := errors.AsType[*url.Error](err); ok {
		address = request.URL
	}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	if dialled, ok := errors.AsType[*net.OpError](err); ok && dialled.Addr != nil {
		return dialled.Addr.String()
	}
	return ""
}
