package git

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/fetch"
)

// A clone is one attempt to get one repository.
type clone struct {
	client  *fetch.Client
	options Options
	slot    *fetch.Slot
	url     *url.URL
	home    *url.URL // which the login is for: that of the outermost repository

	// Of a submodule, which may have submodules:

	pinned  *gitTarget // the commit that its parent names
	depth   int
	modules *int // counts them on all levels
}

func (c *clone) run(ctx context.Context) (*fetch.Tree, error) {
	tree, err := c.tree(ctx)
	if err != nil {
		return nil, c.failed(err)
	}
	return tree, nil
}

func (c *clone) tree(ctx context.Context) (*fetch.Tree, error) {
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	target, err := c.objects(ctx, store)
	switch {
	case err != nil:
		return nil, err
	case c.unchanged(target):
		return &fetch.Tree{Revision: c.options.Unless, Unchanged: true}, nil
	}
	return c.write(ctx, store, target)
}

// unchanged reports whether the caller already has the revision of the target.
func (c *clone) unchanged(target *gitTarget) bool {
	return c.options.Verify == nil && c.options.Unless != "" && target.revision() == c.options.Unless
}

// objects resolves spec.ref, and puts the target's objects into the store, unless the caller has them: from the cache, or
// else from the server.
func (c *clone) objects(ctx context.Context, store *gitStore) (*gitTarget, error) {
	target, err := c.knownTarget()
	switch {
	case err != nil:
		return nil, err
	case target == nil:
	case c.unchanged(target) || c.recall(ctx, store, target):
		return target, nil
	case c.options.Memory.Offline():
		return nil, c.options.Memory.Missing("commit " + target.Commit.String() + " of " + auth.RedactURL(c.url.String()))
	}
	if c.options.Login, err = c.login(ctx, c.options.Login); err != nil {
		return nil, err
	}
	conn, err := c.open(ctx, c.options.Login)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return c.served(ctx, conn, store)
}

// served asks the server. Objects that are in the cache are not downloaded again.
func (c *clone) served(ctx context.Context, conn gitConn, store *gitStore) (*gitTarget, error) {
	remote, err := openGitRemote(ctx, conn)
	if err != nil {
		return nil, err
	}
	target, err := c.resolve(ctx, remote)
	if err != nil {
		return nil, err
	}
	c.rememberTarget(target)
	if c.unchanged(target) || c.recall(ctx, store, target) {
		return target, nil
	}
	if err := c.fetchObjects(ctx, remote, store, target); err != nil {
		return nil, err
	}
	c.remember(store, target)
	return target, nil
}

// write checks the commit of the target, and writes its files.
func (c *clone) write(ctx context.Context, store *gitStore, target *gitTarget) (*fetch.Tree, error) {
	commit, err := store.commit(target.Commit)
	if err != nil {
		return nil, noRef("", "unable to resolve commit object for '%s': %v", target.Commit, err)
	}
	verified, err := c.options.Verify.check(store, target, commit, c.client.Config.Now)
	if err != nil {
		return nil, err
	}
	tree, err := fetch.NewTree(c.options.TempDir)
	if err != nil {
		return nil, err
	}
	tree.Revision, tree.Time = target.revision(), commit.Committer.When
	tree.Signatures, tree.Verified = verified, verifiedText(verified)
	tree.Subject, _, _ = strings.Cut(commit.Message, "\n")
	if err := c.checkout(ctx, store, commit, tree); err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	return tree, nil
}

// failed adds the failed operation to an error, unless the error names it itself.
func (c *clone) failed(err error) error {
	var (
		plain  *plainError
		ref    *refError
		verify *VerificationError
	)
	switch {
	case errors.As(err, &plain), errors.As(err, &verify):
		return err
	case !errors.As(err, &ref) || ref.absent:
		err = fmt.Errorf("unable to clone '%s': %w", auth.RedactURL(c.url.String()), err)
	}
	return fmt.Errorf("failed to checkout and determine revision: %w", err)
}

// open connects to a repository.
func (c *clone) open(ctx context.Context, login *Login) (gitConn, error) {
	if c.url.Scheme == "ssh" {
		return c.openSSH(ctx, c.url, login)
	}
	return c.openHTTP(c.url, login), nil
}

// A gitTarget is the object that spec.ref resolves to. The cache keeps it without wants.
type gitTarget struct {
	Name   string        // refs/…, or empty
	Full   bool          // the revision has the whole name
	Object plumbing.Hash // the object of the name; of an annotated tag, the tag itself
	Commit plumbing.Hash
	// wants are the objects to request, with their history, if the commit itself cannot be requested.
	wants []plumbing.Hash
}

// revision is in source-controller's format.
func (t *gitTarget) revision() string {
	hash := "sha1:" + t.Commit.String()
	switch parts := strings.SplitN(t.Name, "/", 3); {
	case t.Full:
		return t.Name + "@" + hash
	case len(parts) == 3:
		return parts[2] + "@" + hash
	}
	return hash
}

// fetchObjects requests as little as the server allows.
func (c *clone) fetchObjects(ctx context.Context, remote *gitRemote, store *gitStore, target *gitTarget) error {
	s := newSelection(c.options)
	partial := s.partial() && remote.filters()
	q := packRequest{wants: []plumbing.Hash{target.Object}, shallow: true, noFiles: partial}
	if len(target.wants) > 0 {
		q, partial = packRequest{wants: target.wants}, false
	}
	err := store.fetch(ctx, remote, q)
	if complaint, ok := errors.AsType[*remoteError](err); ok && target.Object == target.Commit && c.options.Ref.Commit != "" {
		return noRef("", "unable to resolve commit object for '%s': %v", target.Commit, complaint)
	}
	if err != nil || !partial {
		return err
	}
	commit, err := store.commit(target.Commit)
	if err != nil {
		return err
	}
	files, err := store.blobs(ctx, commit.TreeHash, s)
	if err != nil || len(files) == 0 {
		return err
	}
	return store.fetch(ctx, remote, packRequest{wants: files})
}

// commit returns a commit by its hash.
func (s *gitStore) commit(hash plumbing.Hash) (*object.Commit, error) {
	return object.GetCommit(s.objects, hash)
}
