//go:build !windows

package cmd

// understandsEscapes is true of terminals; TERM=dumb is handled elsewhere.
func understandsEscapes(int) bool { return true }
