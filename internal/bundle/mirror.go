package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// A Name is the name of an artifact in a bundle, and below the prefix of a mirror.
type Name struct {
	Repository string // the host and path of its source
	Tag        string // "" if only the digest is known
	Digest     digest.Digest
}

// String returns the name as the index of a layout has it.
func (n Name) String() string {
	if n.Tag == "" {
		return n.Repository + "@" + n.Digest.String()
	}
	return n.Repository + ":" + n.Tag
}

// MarshalText implements encoding.TextMarshaler.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// parseName parses the text that String returned for a name with this digest.
func parseName(text string, d digest.Digest) (Name, error) {
	n := Name{Repository: strings.TrimSuffix(text, "@"+d.String()), Digest: d}
	if i := strings.LastIndexByte(n.Repository, ':'); i >= 0 {
		n.Repository, n.Tag = n.Repository[:i], n.Repository[i+1:]
	}
	tag := registry.Reference{Reference: cmp.Or(n.Tag, "none")}
	if n.String() != text || !isRepository(n.Repository) || tag.ValidateReferenceAsTag() != nil {
		return Name{}, fmt.Errorf("%.200q is not the name of a chart in a bundle", text)
	}
	return n, nil
}

func isRepository(name string) bool {
	return registry.Reference{Repository: name}.ValidateRepository() == nil
}

var noName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9._-]+|[._-]{2,}`) })

// RepositoryOf returns the name of a repository for a URL: its host and path, without characters that registries refuse. A
// port follows its host after an underscore.
func RepositoryOf(url string) string {
	if _, rest, found := strings.Cut(url, "://"); found {
		url = rest
	}
	url, _, _ = strings.Cut(url, "?")
	host, path, _ := strings.Cut(url, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(strings.Replace(host, ":", "_", 1)+"/"+path), "/") {
		for noName().MatchString(part) && !isRepository(part) {
			part = strings.Trim(noName().ReplaceAllString(part, "-"), "._-")
		}
		if part = strings.Trim(part, "._-"); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// A Source holds the artifacts to mirror.
type Source struct {
	oras.ReadOnlyGraphTarget

	Names []Name // sorted
	Close func() // closes its open files
}

// newSource makes a source of an image layout, whose tags are the names.
func newSource(ctx context.Context, from oras.ReadOnlyGraphTarget, list registry.TagLister, end func()) (*Source, error) {
	s := &Source{from, nil, end}
	tags, err := registry.Tags(ctx, list)
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

// A Copy is the result of mirroring one artifact. Its fields are part of the contract.
type Copy struct {
	Name      Name          `json:"source"`
	Reference string        `json:"reference"` // its name in the registry
	Digest    digest.Digest `json:"digest"`
	State     string        `json:"state"` // one of the constants below
	Err       error         `json:"-"`
}

// The states of a copy.
const (
	Present = "present" // with its referrers: nothing was sent
	Copied  = "copied"
	Moved   = "moved" // its tag named another digest before
	Failed  = "failed"
)

// MirrorOptions holds the options of [Mirror].
type MirrorOptions struct {
	To    string // the oci:// URL of the mirror
	Limit int    // repositories at a time
	Dry   bool   // nothing is sent, and the copies have the state that they would have
	// Many goroutines call these at once. Remote returns a repository below the prefix of the mirror. Retry calls try, again if it
	// failed for a reason that may pass.
	Remote   func(repository string) (*remote.Repository, error)
	Retry    func(ctx context.Context, try func(context.Context) error) error
	Started  func(Name)
	Finished func(*Copy)
}

// Mirror copies all artifacts of a source with their referrers into a registry. Blobs that the registry has are not sent again.
// A tag is set after its manifest and the referrers are there. It returns a copy for each name, in their order.
func Mirror(ctx context.Context, from *Source, o MirrorOptions) []*Copy {
	var repositories [][]*Copy // copies of one share what refers to them
	for i, n := range from.Names {
		if i == 0 || n.Repository != from.Names[i-1].Repository {
			repositories = append(repositories, nil)
		}
		last := len(repositories) - 1
		repositories[last] = append(repositories[last], &Copy{Name: n, Digest: n.Digest})
	}
	work.Ordered(len(repositories), o.Limit, func(i int) {
		for _, c := range repositories[i] {
			o.Started(c.Name)
			c.mirror(ctx, from, o)
			o.Finished(c)
		}
	})
	return slices.Concat(repositories...)
}

// Below returns the repository below the prefix of a mirror for a repository. A repository of the mirror itself keeps its place.
func Below(mirror, repository string) string {
	return strings.TrimPrefix(repository, RepositoryOf(mirror)+"/")
}

func (c *Copy) mirror(ctx context.Context, from *Source, o MirrorOptions) {
	repo, err := o.Remote(Below(o.To, c.Name.Repository))
	if err == nil {
		n := c.Name
		n.Repository = repo.Reference.Registry + "/" + repo.Reference.Repository
		c.Reference = n.String()
		err = o.Retry(ctx, func(ctx context.Context) error { return c.try(ctx, from, repo, o.Dry) })
	}
	if err != nil {
		if step, ok := errors.AsType[*oras.CopyError](err); ok {
			err = step.Err
		}
		c.State, c.Err = Failed, err
	}
}

// try makes one attempt to copy. It does not send again the blobs that an earlier attempt sent.
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

// unwritten is a repository that accepts every push and discards it.
type unwritten struct{ content.ReadOnlyStorage }

// Push implements content.Pusher.
func (unwritten) Push(context.Context, ocispec.Descriptor, io.Reader) error { return nil }
