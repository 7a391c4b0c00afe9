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
	// modules counts the submodules, which may have submodules.
	modules int
	depth   int
}

func (c *clone) run(ctx context.Context, u *url.URL) (*fetch.Tree, error) {
	target, err := c.knownTarget(u)
	if err != nil {
		return nil, c.failed(u, err)
	}
	if target != nil {
		if tree, done, err := c.runKept(ctx, u, target); done {
			return tree, err
		}
	}
	if c.options.Login, err = c.login(ctx, c.options.Login); err != nil {
		return nil, err
	}
	conn, err := c.open(ctx, u, c.options.Login)
	if err != nil {
		return nil, c.failed(u, err)
	}
	defer func() { _ = conn.Close() }()
	remote, err := openGitRemote(ctx, conn, c.options.Login.scrub)
	if err != nil {
		return nil, c.failed(u, err)
	}
	if target, err = c.resolve(ctx, remote); err != nil {
		return nil, c.failed(u, err)
	}
	c.rememberTarget(u, target)
	if c.unchanged(target) {
		return &fetch.Tree{Revision: c.options.Unless, Unchanged: true}, nil
	}
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return nil, c.failed(u, err)
	}
	defer store.Close()
	tree, err := c.fetch(ctx, u, remote, store, target)
	if err != nil {
		return nil, c.failed(u, err)
	}
	return tree, nil
}

// unchanged reports whether the caller has what the target is.
func (c *clone) unchanged(target *gitTarget) bool {
	return c.options.Verify == nil && c.options.Unless != "" && target.revision() == c.options.Unless
}

// runKept makes the tree of what the cache has, without a connection. It is not done if the server has to be asked all the
// same.
func (c *clone) runKept(ctx context.Context, u *url.URL, target *gitTarget) (tree *fetch.Tree, done bool, err error) {
	if c.unchanged(target) {
		return &fetch.Tree{Revision: c.options.Unless, Unchanged: true}, true, nil
	}
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return nil, true, c.failed(u, err)
	}
	defer store.Close()
	selected := newSelection(c.options)
	switch {
	case c.recall(ctx, u, store, target, selected):
	case c.options.Memory.Offline():
		return nil, true, c.failed(u, c.options.Memory.Missing("commit "+target.commit.String()+" of "+auth.RedactURL(u.String())))
	default:
		return nil, false, nil
	}
	if tree, err = c.write(ctx, u, store, target, selected); err != nil {
		return nil, true, c.failed(u, err)
	}
	return tree, true, nil
}

// fetch gets the objects that the target needs, and writes its files.
func (c *clone) fetch(ctx context.Context, u *url.URL, remote *gitRemote, store *gitStore, target *gitTarget) (*fetch.Tree, error) {
	selected := newSelection(c.options)
	if err := c.objects(ctx, u, remote, store, target, selected); err != nil {
		return nil, err
	}
	return c.write(ctx, u, store, target, selected)
}

// objects gets the objects from the cache, or else from the server.
func (c *clone) objects(ctx context.Context, u *url.URL, remote *gitRemote, store *gitStore, target *gitTarget, s selection) error {
	if c.recall(ctx, u, store, target, s) {
		return nil
	}
	if err := c.fetchObjects(ctx, remote, store, target, s); err != nil {
		return err
	}
	c.remember(u, store, target, s)
	return nil
}

// write checks the commit of the target, and writes its files.
func (c *clone) write(ctx context.Context, u *url.URL, store *gitStore, target *gitTarget, selected selection) (*fetch.Tree, error) {
	commit, err := store.commit(target.commit)
	if err != nil {
		return nil, &RefError{Message: fmt.Sprintf("unable to resolve commit object for '%s': %v", target.commit, err)}
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
	if err := c.checkout(ctx, u, store, commit, selected, tree); err != nil {
		return nil, errors.Join(err, tree.Close())
	}
	return tree, nil
}

// failed says what could not be done, unless the error says that itself.
func (c *clone) failed(u *url.URL, err error) error {
	var (
		empty  *EmptyError
		sparse *SparseError
		ref    *RefError
		verify *VerificationError
	)
	switch {
	case errors.As(err, &empty), errors.As(err, &sparse), errors.As(err, &verify):
		return err
	case errors.As(err, &ref) && !ref.absent:
		return checkoutError(err)
	}
	return checkoutError(fmt.Errorf("unable to clone '%s': %w", auth.RedactURL(u.String()), err))
}

// open connects to a repository.
func (c *clone) open(ctx context.Context, u *url.URL, login *Login) (gitConn, error) {
	if u.Scheme == "ssh" {
		return c.openSSH(ctx, u, login)
	}
	return c.openHTTP(u, login), nil
}

// A gitTarget is what spec.ref comes to.
type gitTarget struct {
	name   string        // refs/…, or empty
	full   bool          // the revision has the whole name
	object plumbing.Hash // what the name leads to; of an annotated tag not the commit
	commit plumbing.Hash
	// wants are what to ask for if the commit itself cannot be, with its history.
	wants []plumbing.Hash
}

// revision is in source-controller's format.
func (t *gitTarget) revision() string {
	hash := "sha1:" + t.commit.String()
	switch parts := strings.SplitN(t.name, "/", 3); {
	case t.full:
		return t.name + "@" + hash
	case len(parts) == 3:
		return parts[2] + "@" + hash
	}
	return hash
}

// fetchObjects requests as little as the server allows.
func (c *clone) fetchObjects(ctx context.Context, remote *gitRemote, store *gitStore, target *gitTarget, s selection) error {
	partial := s.partial() && remote.filters()
	q := packRequest{wants: []plumbing.Hash{target.object}, shallow: true, noFiles: partial}
	if len(target.wants) > 0 {
		q, partial = packRequest{wants: target.wants}, false
	}
	err := store.fetch(ctx, remote, q)
	var complaint *remoteError
	if errors.As(err, &complaint) && target.object == target.commit && c.options.Ref.Commit != "" {
		return &RefError{Message: fmt.Sprintf("unable to resolve commit object for '%s': %v", target.commit, complaint)}
	}
	if err != nil || !partial {
		return err
	}
	commit, err := store.commit(target.commit)
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
