package finding

// Hints collects what the errors of a whole chain say about a way out, outermost first, each once.
func Hints(err error) []string {
	var found []string
	seen := map[string]bool{}
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		if h, ok := err.(interface{ Hint() string }); ok {
			if text := h.Hint(); text != "" && !seen[text] {
				seen[text] = true
				found = append(found, text)
			}
		}
		switch u := err.(type) { //nolint:errorlint // this is the walk that errors.As does
		case interface{ Unwrap() error }:
			walk(u.Unwrap())
		case interface{ Unwrap() []error }:
			for _, inner := range u.Unwrap() {
				walk(inner)
			}
		}
	}
	walk(err)
	return found
}
