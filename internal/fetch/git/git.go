// Package git checks out the revision of a GitRepository, over HTTP and SSH, and copies working trees. It verifies
// signatures of commits and tags against the given keys, and keeps only the files.
package git

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// Ref is spec.ref of a GitRepository. If several fields are set, the last one counts. Any is resolved like Git's own lookup of a
// name: the first match of a whole commit, a reference, a tag, a branch or the beginning of a commit.
type Ref struct{ Branch, Tag, SemVer, Name, Commit, Any string }

// defaultBranch is the branch of a GitRepository without spec.ref, regardless of the server's own default.
const defaultBranch = "master"

// Options are the settings of one GitRepository.
type Options struct {
	URL   string
	Ref   Ref
	Login *Login      // nil is anonymous
	Proxy *auth.Proxy // of proxySecretRef; nil is the environment's
	// SkipTLSVerify verifies no server certificate.
	SkipTLSVerify bool
	Timeout       time.Duration // spec.timeout: of the whole clone, with its retries; 0 for no limit

	RecurseSubmodules bool
	// SparseCheckout lists the wanted directories; nil is the whole repository. If the server allows it, only these are
	// downloaded.
	SparseCheckout []string
	// Only lists the files and directories that are needed now, whether they exist or not; nil selects everything. It
	// is for callers that look at a commit without keeping it. SparseCheckout is independent of it.
	Only   []string
	Verify *Verification

	// Unless is the revision of an existing artifact: if it is still current, nothing is fetched. It is ignored if the
	// revision has to be verified.
	Unless string
	// TempDir is where the tree is written; empty is the system's directory for such.
	TempDir string
	Limits  Limits
	// Memory keeps references and objects for later runs.
	Memory cache.Memory
}

// Limits bound the size of a repository. Zero is the default.
type Limits struct {
	Pack     int64 // bytes that are downloaded, of one repository
	Objects  int   // in one repository
	Object   int64 // bytes of one object
	Unpacked int64 // bytes of all files, and of all objects of one repository
	Files    int
}

// The defaults are well above any repository that charts are kept in. Objects are handled in memory, so the limit of
// their size bounds the memory of the program.
const (
	defaultPack     = 2 << 30
	defaultObjects  = 2_000_000
	defaultObject   = 256 << 20
	defaultUnpacked = 4 << 30
	defaultFiles    = 500_000
)

func (l Limits) orDefault() Limits {
	l.Pack = cmp.Or(l.Pack, defaultPack)
	l.Objects = cmp.Or(l.Objects, defaultObjects)
	l.Object = cmp.Or(l.Object, defaultObject)
	l.Unpacked = cmp.Or(l.Unpacked, defaultUnpacked)
	l.Files = cmp.Or(l.Files, defaultFiles)
	return l
}

// Checkout fetches the revision of a GitRepository. Errors have source-controller's texts; [ErrEmpty] reports that the
// repository has no commit at all.
func Checkout(ctx context.Context, c *fetch.Client, o Options) (*fetch.Tree, error) {
	u, err := auth.ParseURL(o.URL)
	if err == nil {
		err = checkURL(u)
	}
	if err != nil {
		return nil, &finding.Problem{
			Code: finding.InvalidURL, Class: finding.Lasting, Text: fmt.Sprintf("failed to parse url '%s': %v", auth.RedactURL(o.URL), err), Err: err,
		}
	}
	o.Limits = o.Limits.orDefault()
	s := c.NewSlot()
	defer s.Free()
	// As with archives, waiting for this process's own transfers does not count.
	if err := s.Move(ctx, u); err != nil {
		return nil, fetch.NewRequestError(ctx, o.URL, err)
	}
	ctx, cancel := fetch.Within(ctx, o.Timeout)
	defer cancel()
	var tree *fetch.Tree
	err = c.Retry(ctx, func(ctx context.Context) error {
		attempt := &clone{client: c, options: o, slot: s, url: u, home: u, modules: new(int)}
		tree, err = attempt.run(ctx)
		return err
	})
	return tree, err
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ssh":
		return fetch.UnsupportedScheme(u.Scheme)
	case u.Hostname() == "":
		return fetch.ErrNoHost
	}
	return nil
}
