package finding

// codedError is an error that only its maker knows the code of.
type codedError struct {
	code Code
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }

func (e *codedError) Unwrap() error { return e.err }

// Code is what is wrong.
func (e *codedError) Code() Code { return e.code }

// WithCode returns an error that says what is wrong by a code. It is for errors that have no type of their own; nil stays
// nil.
func WithCode(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}
