//go:build !windows

package console

// understandsEscapes is true of terminals; TERM=dumb is handled elsewhere.
func understandsEscapes(int) bool { return true }
