package finding

import "net/http"

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
	if c, ok := err.(interface{ Finding() Code }); ok { // walk visits the whole chain, one error after another
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

// A Problem is an error that nobody matches by its type: a fact in words, what is wrong, and what to do.
type Problem struct {
	Code   Code   // "" if that depends on Err
	Text   string // "" for the text of Err
	Advice string // what to do, "" if nobody knows
	Err    error  // that is behind it, if any
}

func (p *Problem) Error() string {
	if p.Text == "" {
		return p.Err.Error()
	}
	return p.Text
}

func (p *Problem) Unwrap() error { return p.Err }

// Finding is what is wrong.
func (p *Problem) Finding() Code { return p.Code }

// Hint is what to do.
func (p *Problem) Hint() string { return p.Advice }

// WithCode returns an error that says what is wrong by a code; nil stays nil.
func WithCode(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Problem{Code: code, Err: err}
}

// WithHint returns an error that says what to do.
func WithHint(err error, hint string) error { return &Problem{Advice: hint, Err: err} }
