package bundle

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"oras.land/oras-go/v2/content"
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
func (p Name) String() string {
	if p.Tag == "" {
		return p.Repository + "@" + p.Digest.String()
	}
	return p.Repository + ":" + p.Tag
}

// parseName reads what String wrote.
func parseName(name string, d digest.Digest) (Name, bool) {
	repository, found := strings.CutSuffix(name, "@"+d.String())
	if !found {
		at := strings.LastIndexByte(name, ':')
		if at < 0 {
			return Name{}, false
		}
		p := Name{name[:at], name[at+1:], d}
		return p, repositories().MatchString(p.Repository) && tags().MatchString(p.Tag)
	}
	return Name{Repository: repository, Digest: d}, repositories().MatchString(repository)
}

// namesIn are the names in a layout, sorted.
func namesIn(ctx context.Context, layout interface {
	content.Resolver
	registry.TagLister
}) (names []Name, err error) {
	err = layout.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			d, err := layout.Resolve(ctx, tag)
			if err != nil {
				return err
			}
			p, ok := parseName(tag, d.Digest)
			if !ok {
				return fmt.Errorf("%.200q is not the name of a chart in a bundle", tag)
			}
			names = append(names, p)
		}
		return nil
	})
	return names, err
}

var (
	repositories = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	})
	tags   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\w[\w.-]{0,127}$`) })
	noName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9._-]+|[._-]{2,}`) })
)

// RepositoryOf is the name of a repository for what is at a URL: its host and path, as far as registries take them. A port
// follows its host behind an underscore.
func RepositoryOf(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	rest, _, _ = strings.Cut(rest, "?")
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(strings.Replace(host, ":", "_", 1)+"/"+path), "/") {
		for noName().MatchString(part) && !repositories().MatchString(part) {
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
