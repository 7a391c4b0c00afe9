//go:build !unix

package cmd

// onSuspension does nothing: this system does not suspend programs.
func onSuspension(func(suspend func())) {}

// foreground returns true: this system has no jobs.
func foreground(int) bool { return true }
