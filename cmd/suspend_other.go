//go:build !unix

package cmd

// onSuspension does nothing: programs are not suspended here.
func onSuspension(func(suspend func())) {}
