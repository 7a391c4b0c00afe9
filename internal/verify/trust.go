package verify

import (
	"context"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// Trust holds the trusted authorities and logs of keyless signatures. It is fetched once, on first use. It is safe for
// concurrent use.
type Trust struct {
	load func(context.Context) (root.TrustedMaterial, error)

	mu     sync.Mutex
	loaded root.TrustedMaterial
	err    error
}

// TrustedRoot returns the trust in a trusted_root.json, without any network. The error is a [*SettingsError].
func TrustedRoot(content []byte) (*Trust, error) {
	m, err := root.NewTrustedRootFromJSON(content)
	if err != nil {
		return nil, unusable("", "unable to parse trusted root", err)
	}
	return &Trust{loaded: m}, nil
}

// material returns the trusted root. It keeps failures as well: a hundred charts try an unreachable server once.
func (t *Trust) material(ctx context.Context) (root.TrustedMaterial, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded == nil && t.err == nil {
		m, err := t.load(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		t.loaded, t.err = m, err
	}
	return t.loaded, t.err
}
