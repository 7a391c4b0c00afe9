package finding

// Ways out that the command line has: below package cmd, only this table knows how its options are spelled.
const (
	NotPublic        = "'%s' is a loopback, private or link-local address: --untrusted connects to none"
	WithoutUntrusted = "leave --untrusted out for manifests that you trust"
	PrivateRedirects = "--allow-private-redirects allows it"
	OtherCache       = "name another directory with --cache-dir"
)
