package finding

// Hints collects what the errors of a whole chain say about a way out, outermost first, each once.
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
