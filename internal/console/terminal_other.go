//go:build !windows

package console

// understandsEscapes is always true on Unix; the caller handles TERM=dumb.
func understandsEscapes(int) bool { return true }
