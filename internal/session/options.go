package session

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

// Options are the options of a command for its runs.
type Options struct {
	// Load selects the files and objects. Its Sources replace the objects that they name.
	Load *load.Options
	// SourceDir is an artifacts directory that replaces all sources that it contains, "" if it is not used.
	SourceDir string
	Store     StoreOptions
	Lock      LockOptions
	Trust     TrustOptions
	// CacheDir is the directory of the cache for later commands, "" to disable it.
	CacheDir string
	Cache    cache.Options
	// Reconcile holds the options of all runs, which a Run may complete.
	Reconcile reconcile.Options
	// Follow fetches the sources that manifests are built from, before the build.
	Follow bool
	// Timeout is the limit of all runs together.
	Timeout time.Duration
}

// StoreOptions set the artifacts directory, and the names of artifacts.
type StoreOptions struct {
	Dir        string
	Named      bool   // the user named it: it may be a link
	Own        bool   // the user named it, and trusts the author of the checkout
	Advertised string // address under which it is served, "" for file:// URLs
	Algorithm  string // of the digests of artifacts, "" for SHA-256
	TTL        time.Duration
	Records    int
}

// LockOptions set the lock file, and whether runs are limited to its entries.
type LockOptions struct {
	File    string   // the file that was named, "" for the usual one
	Usual   string   // the file without a name
	Locked  bool     // charts are taken only from the lock
	From    []string // the bundle with the lock, and the earlier bundles that it needs
	Current bool     // the runs only read the lock, if it exists
}

// Path returns the path of the lock file.
func (o *LockOptions) Path() string { return cmp.Or(o.File, o.Usual) }

// Bundle returns the name of the bundle, or "".
func (o *LockOptions) Bundle() string {
	if o.From == nil {
		return ""
	}
	return filepath.ToSlash(o.From[0])
}
