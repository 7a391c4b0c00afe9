package fetch

import "github.com/helmsrc/helmsrc/internal/auth"

const Redacted = "REDACTED"

// Proxy is what proxySecretRef names.
type Proxy = auth.Proxy

// NewProxy reads the Secret of a proxySecretRef.
func NewProxy(name string, data map[string][]byte) (*Proxy, error) { return auth.NewProxy(name, data) }
