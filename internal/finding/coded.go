package finding

import "net/http"

// Coder is an error that says itself what is wrong. The code is "" if that depends on the errors that it wraps, or cannot
// be reported.
type Coder interface {
	error
	Finding() Code
}

// CodeOf returns what is wrong: the code of the outermost error of a chain that has one, or "". What many kinds of errors
// say of themselves has its code here: that something is too large, that a login was refused, and that something is not what it should be.
func CodeOf(err error) Code {
	code := Code("")
	walk(err, func(err error) bool {
		code = codeOfOne(err)
		return code == ""
	})
	return code
}

func codeOfOne(err error) Code {
	if c, ok := err.(Coder); ok { //nolint:errorlint // walk visits the whole chain, one error after another
		if code := c.Finding(); code != "" {
			return code
		}
	}
	if large, ok := err.(interface{ TooLarge() bool }); ok && large.TooLarge() {
		return TooLarge
	}
	if refused, ok := err.(interface{ AuthFailure() bool }); ok && refused.AuthFailure() {
		return Authentication
	}
	if vouched, ok := err.(interface{ Integrity() bool }); ok && vouched.Integrity() {
		return SignatureFailed
	}
	return ""
}

// walk visits the errors of a chain, outermost first, as long as the function wants more.
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

// OfStatus is what an HTTP status other than success says.
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

// codedError is an error that only its maker knows the code of.
type codedError struct {
	code Code
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }

func (e *codedError) Unwrap() error { return e.err }

// Finding is what is wrong.
func (e *codedError) Finding() Code { return e.code }

// WithCode returns an error that says what is wrong by a code. It is for errors that have no type of their own; nil stays
// nil.
func WithCode(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}
