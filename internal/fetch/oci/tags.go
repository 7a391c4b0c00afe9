package oci

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"oras.land/oras-go/v2/registry"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/resolve"
)

const (
	// tagPageSize is the page size that other clients request, too. A registry may send fewer.
	tagPageSize = 1000
	// maxTags and maxTagPages bound a list of tags. They stop a registry that sends pages without end.
	maxTags     = 200_000
	maxTagPages = 5_000
)

var (
	errTooManyTags = fmt.Errorf("more than %d tags, or %d pages of them", maxTags, maxTagPages)
	errTagPage     = errors.New("the registry's list of tags is malformed, or goes on at another host")
	errTagLoop     = errors.New("the registry's list of tags leads back to a page that was read already")
)

// A NoTagsError reports that a repository has no tag that could be a chart's version.
type NoTagsError struct {
	finding.Problem
	Tags []string // which are no versions
}

func noTags(ref string, tags []string) error {
	p := finding.Problem{Code: finding.NoMatch, Text: "unable to locate any tags in provided repository: " + ref}
	if len(tags) > 0 {
		p.Advice = fmt.Sprintf("none of its %d tags is a semantic version without a leading \"v\"; any other must be named exactly", len(tags))
	}
	return &NoTagsError{p, tags}
}

// Tags lists the tags of a chart in the registry's order. It is an error if no tag can be a chart's version.
func (o *Namespace) Tags(ctx context.Context, chart string) ([]string, error) {
	tags, err := o.tags(ctx, chart)
	if err != nil {
		return nil, fmt.Errorf("could not get tags for %q: %w", chart, err)
	}
	return tags, nil
}

func (o *Namespace) tags(ctx context.Context, chart string) ([]string, error) {
	ref, err := o.repository(chart)
	if err != nil {
		return nil, err
	}
	shown := scheme + ref.String()
	var tags []string
	err = o.operation(ctx, ref, chart, func(x *exchange) error {
		tags, err = x.listTags(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("could not fetch tags for %q: %w", shown, err)
	}
	if !slices.ContainsFunc(tags, canBeVersion) {
		return nil, noTags(shown, tags)
	}
	return tags, nil
}

func canBeVersion(tag string) bool { return len(resolve.FromTags([]string{tag})) > 0 }

// listTags reads page after page, each of them once.
func (x *exchange) listTags(ctx context.Context) ([]string, error) {
	m := x.memory()
	if m.Offline() {
		return x.rememberedTags()
	}
	seen := map[string]bool{}
	x.page = func(u *url.URL) error {
		switch {
		case seen[u.String()]:
			return errTagLoop
		case len(seen) == maxTagPages:
			return errTooManyTags
		}
		seen[u.String()] = true
		return nil
	}
	var tags []string
	err := x.repository().Tags(ctx, "", func(page []string) error {
		if len(tags)+len(page) > maxTags {
			return errTooManyTags
		}
		tags = append(tags, page...)
		return nil
	})
	if err != nil && x.failure == nil && !errors.Is(err, errTooManyTags) {
		// The library's own errors quote URLs that the registry made up.
		err = errTagPage
	}
	if err == nil {
		m.Remember(keptTags, x.reference(""), tags)
	}
	return tags, err
}

// shownRef is how a chart in a registry is shown.
func shownRef(ref registry.Reference, version string) string {
	return scheme + ref.Registry + "/" + ref.Repository + ":" + version
}
