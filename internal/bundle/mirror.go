package bundle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/work"
)

// A Source has what is mirrored: a Layout, or what Charts.Source returns.
type Source interface {
	oras.ReadOnlyGraphTarget
	// Names are sorted.
	Names() []Name
}

// Source returns the charts, to mirror them.
func (c *Charts) Source(ctx context.Context) (Source, error) {
	names, err := namesIn(ctx, c.store)
	return &chartSource{c.store, names}, err
}

type chartSource struct {
	*oci.Store

	names []Name
}

func (s *chartSource) Names() []Name { return s.names }

// A Registry is where things are mirrored to.
type Registry interface {
	// Remote is a repository below the prefix of the mirror.
	Remote(repository string) (*remote.Repository, error)
	// Retry tries again what failed for a reason that may pass.
	Retry(ctx context.Context, try func(ctx context.Context, attempt int) error) error
}

// A Copy is what became of something that is mirrored.
type Copy struct {
	Name

	Reference string // what it is called in the registry
	State     string // one of the constants below
	Err       error
}

// The states of a copy.
const (
	Present = "present" // with all that refers to it: nothing was sent
	Copied  = "copied"
	Moved   = "moved" // its tag named something else before
	Failed  = "failed"
)

// MirrorOptions say how copies are made.
type MirrorOptions struct {
	To       string // the oci:// URL of the mirror
	Limit    int    // repositories at a time
	Dry      bool   // nothing is sent, and the copies say what would be
	Progress Progress
}

// Progress is what a copy reports. Started is called by many goroutines; Finished by one at a time, in the order of the names.
type Progress interface {
	Started(n Name)
	Finished(c Copy)
}

// Mirror copies everything into a registry, with all that refers to it. What the registry has is not sent again. A tag is set
// when all that it names is there. The copies are in the order of their names.
func Mirror(ctx context.Context, from Source, to Registry, o MirrorOptions) []Copy {
	copies := make([]Copy, len(from.Names()))
	for i, n := range from.Names() {
		copies[i].Name = n
	}
	var mu sync.Mutex
	next := 0
	finished := map[*Copy]bool{}
	repositories := slices.Collect(chunks(copies))
	work.Ordered(len(repositories), o.Limit, func(i int) {
		for j := range repositories[i] {
			c := &repositories[i][j]
			o.Progress.Started(c.Name)
			c.mirror(ctx, from, to, o)
			mu.Lock()
			for finished[c] = true; next < len(copies) && finished[&copies[next]]; next++ {
				o.Progress.Finished(copies[next])
			}
			mu.Unlock()
		}
	})
	return copies
}

// chunks are the copies of each repository. They share what refers to them.
func chunks(copies []Copy) func(yield func([]Copy) bool) {
	return func(yield func([]Copy) bool) {
		for start := 0; start < len(copies); {
			end := start + 1
			for end < len(copies) && copies[end].Repository == copies[start].Repository {
				end++
			}
			if !yield(copies[start:end]) {
				return
			}
			start = end
		}
	}
}

// Below is where a mirror has what comes from a repository, below its prefix. What is there already stays where it is.
func Below(mirror, repository string) string {
	return strings.TrimPrefix(repository, RepositoryOf(mirror)+"/")
}

func (c *Copy) mirror(ctx context.Context, from Source, to Registry, o MirrorOptions) {
	repo, err := to.Remote(Below(o.To, c.Repository))
	if err == nil {
		n := c.Name
		n.Repository = repo.Reference.Registry + "/" + repo.Reference.Repository
		c.Reference = n.String()
		err = to.Retry(ctx, func(ctx context.Context, _ int) error { return c.try(ctx, from, repo, o.Dry) })
	}
	if err != nil {
		var step *oras.CopyError
		if errors.As(err, &step) {
			err = step.Err
		}
		c.State, c.Err = Failed, err
	}
}

// try makes one attempt. What an earlier one sent is found there.
func (c *Copy) try(ctx context.Context, from Source, repo *remote.Repository, dry bool) error {
	root, err := from.Resolve(ctx, c.Digest.String())
	if err != nil {
		return err
	}
	was, err := c.tagged(ctx, repo)
	if err != nil {
		return err
	}
	var to content.Storage = repo
	if dry {
		to = unwritten{repo}
	}
	var mu sync.Mutex
	sent := c.State == Copied // by an earlier attempt
	o := oras.ExtendedCopyGraphOptions{Depth: maxReferring}
	o.PostCopy = func(context.Context, ocispec.Descriptor) error {
		mu.Lock()
		defer mu.Unlock()
		sent = true
		return nil
	}
	err = oras.ExtendedCopyGraph(ctx, from, to, root, o)
	c.State = Present
	if sent || was.Digest == "" {
		c.State = Copied
	}
	if err != nil || c.Tag == "" || was.Digest == c.Digest {
		return err
	}
	if was.Digest != "" {
		c.State = Moved
	}
	if dry {
		return nil
	}
	text, err := content.FetchAll(ctx, from, root)
	if err != nil {
		return err
	}
	return repo.PushReference(ctx, root, bytes.NewReader(text), c.Tag)
}

// tagged is what the registry has under the tag, or under the digest where there is no tag; the zero value is nothing.
func (c *Copy) tagged(ctx context.Context, repo *remote.Repository) (ocispec.Descriptor, error) {
	reference := c.Tag
	if reference == "" {
		reference = c.Digest.String()
	}
	was, err := repo.Resolve(ctx, reference)
	if errors.Is(err, errdef.ErrNotFound) {
		return ocispec.Descriptor{}, nil
	}
	return was, err
}

// unwritten is a repository that takes everything and keeps nothing.
type unwritten struct{ content.ReadOnlyStorage }

// Push implements content.Pusher.
func (unwritten) Push(context.Context, ocispec.Descriptor, io.Reader) error { return nil }
