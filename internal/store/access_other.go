//go:build !unix

package store

// mayWrite knows nothing here: the first file that is written shows it.
func mayWrite(string) error { return nil }
