//go:build !windows

package cmd

// understandsEscapes is true of terminals; TERM=dumb is told apart elsewhere.
func understandsEscapes(int) bool { return true }
