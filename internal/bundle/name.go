package bundle

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/digest"
)

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
			was := part
			if part = strings.Trim(noName().ReplaceAllString(part, "-"), "._-"); part == was {
				break
			}
		}
		if part = strings.Trim(part, "._-"); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}
