package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/helmsrc/helmsrc/internal/fetch"
)

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

// resolve resolves spec.ref. The server's references are read only here: later steps use hashes.
func (c *clone) resolve(ctx context.Context, remote *gitRemote) (*gitTarget, error) {
	switch ref := c.options.Ref; {
	case c.pinned != nil:
		return c.resolveCommit(ctx, remote, Ref{Commit: c.pinned.Commit.String()})
	case ref.Any != "":
		return c.resolveAny(ctx, remote, ref.Any)
	case ref.Commit != "":
		return c.resolveCommit(ctx, remote, ref)
	case ref.Name != "":
		t, err := named(ctx, remote, ref.Name)
		var missing *refError
		switch {
		case errors.As(err, &missing):
			return nil, noRef(missing.Advice, "unable to resolve ref '%s' to a specific commit", ref.Name)
		case err != nil:
			return nil, err
		}
		t.Full = true
		return t, nil
	case ref.SemVer != "":
		return c.resolveSemVer(ctx, remote, ref.SemVer)
	case ref.Tag != "":
		return named(ctx, remote, tagPrefix+ref.Tag)
	default:
		return named(ctx, remote, branchPrefix+cmp.Or(ref.Branch, defaultBranch))
	}
}

// resolveAny resolves a name of unknown kind.
func (c *clone) resolveAny(ctx context.Context, remote *gitRemote, name string) (*gitTarget, error) {
	if plumbing.IsHash(name) {
		return c.resolveCommit(ctx, remote, Ref{Commit: name})
	}
	for _, full := range []string{name, tagPrefix + name, branchPrefix + name} {
		if full == name && !strings.HasPrefix(name, "refs/") {
			continue
		}
		t, err := named(ctx, remote, full)
		if missing, ok := errors.AsType[*refError](err); ok && missing.absent {
			continue
		}
		if t != nil {
			t.Full = full == name
		}
		return t, err
	}
	if isShortHash(name) {
		if t, err := c.resolveShort(ctx, remote, name); t != nil || err != nil {
			return t, err
		}
	}
	return nil, unknownName(ctx, remote, name)
}

// resolveShort finds the commit whose hash begins with a text. A server answers for whole hashes alone: the commits of all branches
// and tags are downloaded, without their files where the server can leave them out. It is nil if there is no such commit.
func (c *clone) resolveShort(ctx context.Context, remote *gitRemote, short string) (*gitTarget, error) {
	refs, err := remote.references(ctx, branchPrefix, tagPrefix)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	q := packRequest{noFiles: true}
	for _, r := range refs {
		q.wants = append(q.wants, r.hash)
	}
	if err := store.fetch(ctx, remote, q); err != nil {
		return nil, err
	}
	commits, err := store.objects.IterEncodedObjects(plumbing.CommitObject)
	if err != nil {
		return nil, err
	}
	var found []string
	err = commits.ForEach(func(o plumbing.EncodedObject) error {
		if hash := o.Hash().String(); strings.HasPrefix(hash, short) && !slices.Contains(found, hash) {
			found = append(found, hash)
		}
		return nil
	})
	switch {
	case err != nil || len(found) == 0:
		return nil, err
	case len(found) > 1:
		slices.Sort(found)
		return nil, noRef("several commits begin with it: "+strings.Join(found, ", "), "bad revision '%s'", short)
	}
	return c.resolveCommit(ctx, remote, Ref{Commit: found[0]})
}

// unknownName is the error of a reference that does not exist. It offers the default branch.
func unknownName(ctx context.Context, remote *gitRemote, name string) error {
	refs, err := remote.references(ctx, "HEAD")
	if err != nil {
		return err
	}
	hint := ""
	if target := headOf(refs); target != "" {
		hint = "ref: " + shortBranch(target)
	}
	return noRef(hint, "bad revision '%s'", name)
}

// leastHash is the shortest commit that Git writes.
const leastHash = 7

func isShortHash(name string) bool {
	return len(name) >= leastHash && strings.Trim(name, "0123456789abcdef") == ""
}

func named(ctx context.Context, remote *gitRemote, name string) (*gitTarget, error) {
	_, short, _ := strings.Cut(strings.TrimPrefix(name, "refs/"), "/")
	refs, err := remote.references(ctx, "HEAD", name, tagPrefix+short)
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		if r.name == name {
			return &gitTarget{Name: name, Object: r.hash, Commit: r.commit()}, nil
		}
	}
	return nil, notThere(ctx, remote, name, refs)
}

// notThere returns an error that distinguishes an empty repository from a missing reference.
func notThere(ctx context.Context, remote *gitRemote, name string, refs []gitReference) error {
	if len(refs) == 0 {
		all, err := remote.references(ctx, "refs/")
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ErrEmpty
		}
	}
	return missingRef(name, refs)
}

// resolveCommit returns a target for a commit: the commit itself, if the server sends any, else references with its history.
func (c *clone) resolveCommit(ctx context.Context, remote *gitRemote, ref Ref) (*gitTarget, error) {
	if !plumbing.IsHash(ref.Commit) {
		return nil, noRef("", "unable to resolve commit object for '%s': not a SHA-1 hash of 40 digits", ref.Commit)
	}
	t := &gitTarget{}
	prefixes := []string{"refs/"}
	if ref.Branch != "" {
		branch, err := named(ctx, remote, branchPrefix+ref.Branch)
		if err != nil {
			return nil, err
		}
		t.Name, t.wants = branch.Name, []plumbing.Hash{branch.Object}
		prefixes = []string{branch.Name}
	}
	t.Commit = plumbing.NewHash(ref.Commit)
	t.Object = t.Commit
	if remote.wantsCommits() {
		t.wants = nil
		return t, nil
	}
	refs, err := remote.references(ctx, prefixes...)
	if err != nil {
		return nil, err
	}
	if len(refs) == 0 {
		return nil, ErrEmpty
	}
	for _, r := range refs {
		if r.hash == t.Commit {
			t.wants = nil
			return t, nil
		}
		if t.Name == "" && (strings.HasPrefix(r.name, branchPrefix) || strings.HasPrefix(r.name, tagPrefix)) {
			t.wants = append(t.wants, r.hash)
		}
	}
	return t, nil
}

// A gitTag is a tag that is a version.
type gitTag struct {
	ref     gitReference
	version *semver.Version
	when    time.Time
}

func (c *clone) resolveSemVer(ctx context.Context, remote *gitRemote, text string) (*gitTarget, error) {
	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return nil, noRef("", "semver parse error: %v", err)
	}
	refs, err := remote.references(ctx, tagPrefix)
	if err != nil {
		return nil, err
	}
	best, tags := bestTags(refs, constraint)
	if len(best) == 0 {
		return nil, noMatch(ctx, remote, text, tags, refs)
	}
	if len(best) > 1 {
		if err := c.dates(ctx, remote, best); err != nil {
			return nil, err
		}
	}
	// Of versions that differ in their build metadata alone the youngest counts.
	ref := slices.MaxFunc(best, func(a, b gitTag) int {
		return cmp.Or(a.when.Compare(b.when), cmp.Compare(a.version.Metadata(), b.version.Metadata()), cmp.Compare(a.ref.name, b.ref.name))
	}).ref
	fetch.Decided(ctx, "candidates: tags that are versions: %d; '%s' selects %s", tags, text, strings.TrimPrefix(ref.name, tagPrefix))
	return &gitTarget{Name: ref.name, Object: ref.hash, Commit: ref.commit()}, nil
}

func noMatch(ctx context.Context, remote *gitRemote, text string, versions int, tags []gitReference) error {
	if err := notThere(ctx, remote, "", tags); errors.Is(err, ErrEmpty) {
		return err
	}
	return noRef(fmt.Sprintf("%d of the repository's %d tags are versions", versions, len(tags)), "no match found for semver: %s", text)
}

// bestTags returns the tags with the highest version that matches, and how many are versions at all.
func bestTags(refs []gitReference, constraint *semver.Constraints) (best []gitTag, versions int) {
	for _, r := range refs {
		name := strings.TrimPrefix(r.name, tagPrefix)
		if _, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v")); err != nil {
			continue
		}
		versions++
		v, err := semver.NewVersion(name)
		if err != nil || !constraint.Check(v) {
			continue
		}
		switch {
		case len(best) == 0 || v.GreaterThan(best[0].version):
			best = []gitTag{{ref: r, version: v}}
		case v.Equal(best[0].version):
			best = append(best, gitTag{ref: r, version: v})
		}
	}
	return best, versions
}

// dates fetches the commits of tags, to find the youngest.
func (c *clone) dates(ctx context.Context, remote *gitRemote, tags []gitTag) error {
	store, err := newGitStore(c.options.TempDir, c.options.Limits)
	if err != nil {
		return err
	}
	defer store.Close()
	q := packRequest{shallow: true, noFiles: true}
	for _, t := range tags {
		q.wants = append(q.wants, t.ref.hash)
	}
	if err := store.fetch(ctx, remote, q); err != nil {
		return err
	}
	for i := range tags {
		commit, err := store.commit(tags[i].ref.commit())
		if err != nil {
			return fmt.Errorf("unable to resolve commit of a tag revision: %w", err)
		}
		tags[i].when = commit.Committer.When
	}
	return nil
}
