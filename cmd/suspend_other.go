//go:build !unix

package cmd

// onSuspension does nothing: programs are not suspended here.
func onSuspension(func(suspend func())) {}

// foreground is always true: there are no jobs here.
func foreground(int) bool { return true }
