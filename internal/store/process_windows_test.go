package store

// These two parts need resource limits and user ids.
func fillDisk(*Store) error     { return nil }
func writeNowhere(*Store) error { return nil }
