package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/work"
)

// A Source has what is mirrored.
type Source struct {
	oras.ReadOnlyGraphTarget

	Names []Name // sorted
	Close func() // closes the files that it has open
}

// tagged is an image layout.
type tagged interface {
	oras.ReadOnlyGraphTarget
	registry.TagLister
}

func newSource(ctx context.Context, from tagged, end func()) (*Source, error) {
	s := &Source{from, nil, end}
	tags, err := registry.Tags(ctx, from)
	for _, tag := range tags {
		d, err := from.Resolve(ctx, tag)
		if err != nil {
			return nil, err
		}
		name, err := parseName(tag, d.Digest)
		if err != nil {
			return nil, err
		}
		s.Names = append(s.Names, name)
	}
	return s, err
}

// A Registry is where things are mirrored to.
type Registry interface {
	// Remote is a repository below the prefix of the mirror.
	Remote(repository string) (*remote.Repository, error)
	// Retry tries again what failed for a reason that may pass.
	Retry(ctx context.Context, try func(ctx context.Context, attempt int) error) error
}

// A Copy is what became of something that is mirrored. Its fields are part of the contract.
type Copy struct {
	Name      Name          `json:"source"`
	Reference string        `json:"reference"` // what it is called in the registry
	Digest    digest.Digest `json:"digest"`
	State     string        `json:"state"` // one of the constants below
	Err       error         `json:"-"`

	done chan struct{} // closed when that is known
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
	To    string // the oci:// URL of the mirror
	Limit int    // repositories at a time
	Dry   bool   // nothing is sent, and the copies say what would be
	// Started is called by many goroutines; Finished by one, in the order of the names.
	Started  func(Name)
	Finished func(*Copy)
}

// Mirror copies everything into a registry, with all that refers to it. What the registry has is not sent again. A tag is set
// when all that it names is there.
func Mirror(ctx context.Context, from *Source, to Registry, o MirrorOptions) {
	copies := make([]Copy, len(from.Names))
	var first []int // of each repository: its copies share what refers to them
	for i, n := range from.Names {
		copies[i] = Copy{Name: n, Digest: n.Digest, done: make(chan struct{})}
		if i == 0 || n.Repository != from.Names[i-1].Repository {
			first = append(first, i)
		}
	}
	go work.Ordered(len(first), o.Limit, func(n int) {
		for i := first[n]; i < len(copies) && copies[i].Name.Repository == copies[first[n]].Name.Repository; i++ {
			o.Started(copies[i].Name)
			copies[i].mirror(ctx, from, to, o)
			close(copies[i].done)
		}
	})
	for i := range copies {
		<-copies[i].done
		o.Finished(&copies[i])
	}
}

// Below is where a mirror has what comes from a repository, below its prefix. What is there already stays where it is.
func Below(mirror, repository string) string {
	return strings.TrimPrefix(repository, RepositoryOf(mirror)+"/")
}

func (c *Copy) mirror(ctx context.Context, from *Source, to Registry, o MirrorOptions) {
	repo, err := to.Remote(Below(o.To, c.Name.Repository))
	if err == nil {
		n := c.Name
		n.Repository = repo.Reference.Registry + "/" + repo.Reference.Repository
		c.Reference = n.String()
		err = to.Retry(ctx, func(ctx context.Context, _ int) error { return c.try(ctx, from, repo, o.Dry) })
	}
	if err != nil {
		if step, ok := errors.AsType[*oras.CopyError](err); ok {
			err = step.Err
		}
		c.State, c.Err = Failed, err
	}
}

// try makes one attempt. What an earlier one sent is found there.
func (c *Copy) try(ctx context.Context, from *Source, repo *remote.Repository, dry bool) error {
	root, err := from.Resolve(ctx, c.Digest.String())
	if err != nil {
		return err
	}
	was, err := repo.Resolve(ctx, cmp.Or(c.Name.Tag, c.Digest.String()))
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return err
	}
	var to content.Storage = repo
	if dry {
		to = unwritten{repo}
	}
	var sent atomic.Bool
	sent.Store(c.State == Copied || was.Digest == "") // by an earlier attempt, or it will be
	o := oras.ExtendedCopyGraphOptions{Depth: maxReferring}
	o.PostCopy = func(context.Context, ocispec.Descriptor) error { sent.Store(true); return nil }
	err = oras.ExtendedCopyGraph(ctx, from, to, root, o)
	if c.State = Present; sent.Load() {
		c.State = Copied
	}
	if err != nil || c.Name.Tag == "" || was.Digest == c.Digest {
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
	return repo.PushReference(ctx, root, bytes.NewReader(text), c.Name.Tag)
}

// unwritten is a repository that takes everything and keeps nothing.
type unwritten struct{ content.ReadOnlyStorage }

// Push implements content.Pusher.
func (unwritten) Push(context.Context, ocispec.Descriptor, io.Reader) error { return nil }
