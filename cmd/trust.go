package cmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// maxTrustBytes bounds the files that say who is trusted.
const maxTrustBytes = 16 << 20

// trustOptions say whose signatures count, beyond what the manifests do.
type trustOptions struct {
	trustedRoot  string
	keyring      string
	require      bool
	dependencies bool
}

func (o *trustOptions) add(fs *pflag.FlagSet) {
	fs.StringVar(&o.trustedRoot, "trusted-root", "", "`file` with the authorities and logs of keyless signatures (default: the public Sigstore's, fetched at most once a day)")
	fs.StringVar(&o.keyring, "keyring", "", "`file` with PGP keys: charts without spec.verify have to have a provenance file by one of them")
	fs.BoolVar(&o.require, "require-verification", false, "fail charts that neither spec.verify nor a provenance file vouches for")
}

func (o *trustOptions) addDependencies(fs *pflag.FlagSet) {
	fs.BoolVar(&o.dependencies, "verify-dependencies", false, "with --keyring: charts that are fetched as dependencies have to have a provenance file, too")
}

// apply reads the files, and says where what is fetched is kept.
func (o *trustOptions) apply(ctx context.Context, to *reconcile.Options, getenv func(string) string) error {
	if dir := cacheDir(runtime.GOOS, getenv); dir != "" {
		to.TrustCache = filepath.Join(dir, "sigstore")
	}
	to.RequireVerification, to.VerifyDependencies = o.require, o.dependencies
	var err error
	if o.trustedRoot != "" {
		to.Trust, err = readTrust(ctx, "trusted-root", o.trustedRoot, reconcile.TrustedRoot)
	}
	if o.keyring != "" && err == nil {
		to.Keyring, err = readTrust(ctx, "keyring", o.keyring, reconcile.ParseKeyring)
	}
	if o.dependencies && o.keyring == "" {
		err = &exit.UsageError{Err: errors.New("--verify-dependencies needs --keyring")}
	}
	return err
}

// readTrust reads the file of a flag.
func readTrust[T any](ctx context.Context, flag, name string, parse func([]byte) (T, error)) (T, error) {
	var parsed T
	content, err := file.Read(ctx, name, maxTrustBytes)
	if err == nil {
		parsed, err = parse(content)
	}
	if err == nil {
		return parsed, nil
	}
	usage := &exit.UsageError{Err: fmt.Errorf("--%s: %w", flag, err)}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		usage.Advice = hinted.Hint()
	}
	return parsed, usage
}
