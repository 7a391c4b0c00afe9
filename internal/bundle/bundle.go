// Package bundle writes and reads the file that carries charts over a gap between networks: an OCI image layout with a
// lock, with the answers that sources gave, and with the bytes that belong to them. It prints nothing and knows no flags.
package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// The media types of a bundle and of its layers.
const (
	artifactType = "application/vnd.helmsrc.bundle.v1"
	lockType     = "application/vnd.helmsrc.lock.v1+yaml"
	answerType   = "application/vnd.helmsrc.answer.v1+json" // its title is the name in the cache
	bytesType    = "application/octet-stream"
	contentsType = "application/vnd.helmsrc.contents.v1" // the digests of what charts have, which are no layers of the bundle
	sinceType    = "application/vnd.helmsrc.since.v1+json"
)

// What is read of a bundle is bounded. A manifest of 20,000 layers has some 4 MiB.
const (
	maxManifest = 16 << 20 // also of the index
	maxLock     = 64 << 20
	maxAnswer   = 40 << 20 // a list of tags is the longest
	maxBytes    = 4 << 30  // one archive, layer or pack: none that is fetched is as large
	maxEntries  = 200_000
)

// A Base is an earlier bundle, of which the other side has all. The zero value stands for no bundle.
type Base struct {
	Bundle digest.Digest          // of its manifest
	has    map[digest.Digest]bool // the layers
}

// since is the configuration of a bundle that stands on another one.
type since struct {
	Bundle digest.Digest   `json:"bundle"`
	Lacks  []digest.Digest `json:"lacks"` // the layers that only that one has
}

var errForeign = finding.WithHint(errors.New("not a bundle of helmsrc"), finding.WriteBundle)

// problem is why the bundle of a name cannot be read, and what to do.
func problem(name string, err error) error {
	p := &finding.Problem{Text: name + ": " + err.Error(), Err: err}
	if len(finding.Hints(err)) == 0 && !errors.Is(err, fs.ErrNotExist) {
		p.Advice = "copy the file again, and compare its digest with that of the original"
	}
	if _, altered := errors.AsType[*digest.MismatchError](err); altered {
		p.Class = finding.Untrusted
	}
	return p
}

// A Name is what something that is carried is called, below the prefix of a mirror.
type Name struct {
	Repository string // the host and path of its source
	Tag        string // "" for what is known by its digest alone
	Digest     digest.Digest
}

// String is how the index of a layout calls it.
func (n Name) String() string {
	if n.Tag == "" {
		return n.Repository + "@" + n.Digest.String()
	}
	return n.Repository + ":" + n.Tag
}

// MarshalText implements encoding.TextMarshaler.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// parseName reads what String wrote.
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

// RepositoryOf is the name of a repository for what is at a URL: its host and path, as far as registries take them. A port
// follows its host behind an underscore.
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
