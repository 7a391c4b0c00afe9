package finding

import "net/http"

// CodeOf returns the code of the outermost error of a chain that has one, or "". It also assigns the codes of facts that
// errors report by a method: that content is too large, that a login was refused, or that the integrity is violated.
func CodeOf(err error) Code {
	code := Code("")
	walk(err, func(err error) bool {
		code = codeOfOne(err)
		return code == ""
	})
	return code
}

func codeOfOne(err error) Code {
	if c, ok := err.(interface{ Finding() Code }); ok { // walk visits all errors of the chain
		if code := c.Finding(); code != "" {
			return code
		}
	}
	if large, ok := as[interface{ TooLarge() bool }](err); ok && large.TooLarge() {
		return TooLarge
	}
	if refused, ok := as[interface{ AuthFailure() bool }](err); ok && refused.AuthFailure() {
		return Authentication
	}
	if vouched, ok := as[interface{ Integrity() bool }](err); ok && vouched.Integrity() {
		return SignatureFailed
	}
	return ""
}

// as does the work of errors.As for a single error, without the errors that it wraps.
func as[T any](err error) (t T, ok bool) {
	if t, ok = err.(T); ok {
		return t, true
	}
	p, ok := err.(interface{ As(any) bool }) // a [Problem], or a type that embeds it
	return t, ok && p.As(&t)
}

// walk visits the errors of a chain, outermost first, until visit returns false.
func walk(err error, visit func(error) bool) bool {
	if err == nil {
		return true
	}
	if !visit(err) {
		return false
	}
	switch u := err.(type) { //nolint:errorlint // this is the walk that errors.As does
	case interface{ Unwrap() error }:
		return walk(u.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, inner := range u.Unwrap() {
			if !walk(inner, visit) {
				return false
			}
		}
	}
	return true
}

// OfStatus returns the code for an HTTP status other than success.
func OfStatus(status int) Code {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Authentication
	case status == http.StatusNotFound, status == http.StatusGone:
		return NotFound
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests,
		status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return ServerError
	}
	return RefusedRequest
}

// A Class holds facts about a problem that its own type would report by methods. Several may apply.
type Class uint8

// The classes.
const (
	Lasting   Class = 1 << iota // a later attempt would fail as well
	Passing                     // a later attempt may succeed
	Login                       // a login is the reason
	Untrusted                   // the integrity is violated
	Large                       // content exceeds a limit
	Drifted                     // manifests and lock differ
)

// Retryable returns Passing if a later attempt may succeed, else Lasting.
func Retryable(yes bool) Class {
	if yes {
		return Passing
	}
	return Lasting
}

// Transient reports whether a later attempt may succeed.
func (c Class) Transient() bool { return c&Passing != 0 }

// AuthFailure reports whether the reason is a login.
func (c Class) AuthFailure() bool { return c&Login != 0 }

// TooLarge reports whether content exceeds a limit.
func (c Class) TooLarge() bool { return c&Large != 0 }

// Drift reports whether manifests and lock differ.
func (c Class) Drift() bool { return c&Drifted != 0 }

// Integrity reports whether a digest, signature or other proof is violated.
func (c Class) Integrity() bool { return c&Untrusted != 0 }

// TransientStatus reports whether a retry may help after this HTTP status.
func TransientStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// A Problem is an error that no caller matches by its type: a text, its code, and advice.
type Problem struct {
	Code   Code   // "" if that depends on Class and Err
	Class  Class  // 0 if that depends on Err
	Text   string // "" for the text of Err
	Bare   string // Text without places in manifests, or ""
	Field  []any  // the path of the field, nil if that depends on the code
	Advice string // the fix, "" if it is unknown
	Err    error  // the wrapped error, if any
}

func (p *Problem) Error() string {
	if p.Text == "" && p.Err != nil {
		return p.Err.Error()
	}
	return p.Text
}

func (p *Problem) Unwrap() error { return p.Err }

// As sets the target to the class if the class decides the methods of its type.
func (p *Problem) As(target any) bool {
	switch t := target.(type) {
	case *interface{ Transient() bool }:
		*t = p.Class
		return p.Class&(Lasting|Passing) != 0
	case *interface{ AuthFailure() bool }:
		*t = p.Class
		return p.Class.AuthFailure()
	case *interface{ Integrity() bool }:
		*t = p.Class
		return p.Class.Integrity()
	case *interface{ Drift() bool }:
		*t = p.Class
		return p.Class.Drift()
	case *interface{ TooLarge() bool }:
		*t = p.Class
		return p.Class.TooLarge()
	}
	return false
}

// Finding returns the code of the problem.
func (p *Problem) Finding() Code { return p.Code }

// Unplaced returns the text without places in manifests, "" if it has no such text.
func (p *Problem) Unplaced() string { return p.Bare }

// Path returns the path of the field that the problem is about, or nil.
func (p *Problem) Path() []any { return p.Field }

// PathOf returns the path of the field that an error is about, from the outermost error of a chain that has it, or nil.
func PathOf(err error) (path []any) {
	walk(err, func(err error) bool {
		if located, ok := err.(interface{ Path() []any }); ok {
			path = located.Path()
		}
		return path == nil
	})
	return path
}

// Hint returns the advice.
func (p *Problem) Hint() string { return p.Advice }

// WithCode returns an error with a code. It returns nil for nil.
func WithCode(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Problem{Code: code, Err: err}
}

// WithHint returns an error with advice.
func WithHint(err error, hint string) error { return &Problem{Advice: hint, Err: err} }
