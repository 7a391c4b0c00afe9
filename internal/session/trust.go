package session

import (
	"context"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/verify"
)

// maxTrustBytes is the limit, in bytes, of a file with trusted keys or authorities.
const maxTrustBytes = 16 << 20

// TrustOptions are the files with trusted keys and authorities, in addition to those that manifests name.
type TrustOptions struct {
	Root    string // file with the authorities and logs of keyless signatures, "" for the public Sigstore's
	Keyring string // file with PGP keys, or ""
}

// read reads the files into the options of a reconciler.
func (o *TrustOptions) read(ctx context.Context, to *reconcile.Options) error {
	var err error
	if o.Root != "" {
		to.Trust, err = readTrust(ctx, "trusted-root", o.Root, verify.TrustedRoot)
	}
	if o.Keyring != "" && err == nil {
		to.Keyring, err = readTrust(ctx, "keyring", o.Keyring, verify.ParseKeyring)
	}
	return err
}

// readTrust reads and parses the file of an option.
func readTrust[T any](ctx context.Context, option, name string, parse func([]byte) (T, error)) (T, error) {
	var parsed T
	content, err := file.Read(ctx, name, maxTrustBytes)
	if err == nil {
		parsed, err = parse(content)
	}
	if err == nil {
		return parsed, nil
	}
	return parsed, &exit.UsageError{Option: option, Err: err}
}
