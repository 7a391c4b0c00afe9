package session

import (
	"cmp"
	"path/filepath"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// Options are what a command says of its runs.
type Options struct {
	// Load says what is read. Its Sources stand in for the objects that they name.
	Load *load.Options
	// SourceDir is an artifacts directory that stands in for every source in it, "" for none.
	SourceDir string
	Store     StoreOptions
	Lock      LockOptions
	Trust     TrustOptions
	// CacheDir is the directory of what is kept for later commands, "" for none.
	CacheDir string
	Cache    cache.Options
	// Reconcile has what all runs have in common, and what a Run leaves empty.
	Reconcile reconcile.Options
	// Follow fetches the sources that manifests are built of first.
	Follow bool
	// Timeout is the limit of all runs together.
	Timeout time.Duration
}

// StoreOptions say where artifacts are kept, and how they are named.
type StoreOptions struct {
	Dir        string
	Named      bool   // by the user: it may be a link
	Own        bool   // the user has named it, and trusts the author of the checkout
	Advertised string // address under which it is served, "" for file:// URLs
	Algorithm  string // of the digests of artifacts, "" for SHA-256
	TTL        time.Duration
	Records    int
}

func (o *StoreOptions) algorithm() godigest.Algorithm {
	return cmp.Or(godigest.Algorithm(o.Algorithm), godigest.SHA256)
}

// LockOptions say which lock file there is, and whether runs take everything from it.
type LockOptions struct {
	File    string   // that was named, "" for the usual one
	Usual   string   // the file where none was named
	Locked  bool     // everything is taken from it
	From    []string // a bundle that has the lock, and those that it stands on
	Current bool     // the runs only have to know what is locked, if anything is
}

// Path is the lock file.
func (o *LockOptions) Path() string { return cmp.Or(o.File, o.Usual) }

// Bundle is the name of the bundle, "" for none.
func (o *LockOptions) Bundle() string {
	if o.From == nil {
		return ""
	}
	return filepath.ToSlash(o.From[0])
}
