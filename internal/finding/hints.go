package finding

// Hints returns the advice of all errors of a chain, the outermost first, without duplicates.
func Hints(err error) []string {
	var found []string
	seen := map[string]bool{}
	walk(err, func(err error) bool {
		if h, ok := err.(interface{ Hint() string }); ok {
			if text := h.Hint(); text != "" && !seen[text] {
				seen[text] = true
				found = append(found, text)
			}
		}
		return true
	})
	return found
}
