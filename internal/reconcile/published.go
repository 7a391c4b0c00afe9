package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Takes reports whether the constraint could choose one of Versions.
func (p *Published) Takes(c resolve.Candidate) bool { return p.takes(c) }

// Latest returns the newest version that was not withdrawn. It is a pre-release only if the version in use is one, or
// if there are only pre-releases.
func (p *Published) Latest() (resolve.Candidate, bool) {
	return resolve.Newest(p.Versions, resolve.IsPrerelease(cmp.Or(p.Current, p.Wanted)))
}

// Outdated reports whether a newer version is published than the version in use (without one, than the wanted version), or
// whether the wanted version differs from the version in use.
func (p *Published) Outdated() bool {
	latest, ok := p.Latest()
	inUse := cmp.Or(p.Current, p.Wanted)
	return ok && resolve.Newer(latest.Version, inUse) || p.Current != "" && p.Wanted != p.Current
}

// Find returns the published version with that text.
func (p *Published) Find(text string) (resolve.Candidate, bool) {
	i := slices.IndexFunc(p.Versions, func(c resolve.Candidate) bool { return c.Version == text })
	if i < 0 {
		return resolve.Candidate{}, false
	}
	return p.Versions[i], true
}

func (p *chartReconciliation) listCharts(ctx context.Context, obj *sourcev1.HelmChart, source *Result) error {
	if source.Failure != nil { // a stored index may be old, and would hide new versions
		return source.nothing()
	}
	charts, err := p.publishedCharts(ctx, source)
	if err != nil {
		return err
	}
	if err := resolve.ValidateName(obj.Spec.Chart); err != nil {
		return status.InvalidChartReference.Wrap(err)
	}
	found := &Published{Chart: obj.Spec.Chart, Constraint: obj.Spec.Version, Exact: resolve.IsExact(obj.Spec.Version)}
	switch charts := charts.(type) {
	case *indexCharts:
		err = charts.list(ctx, p.remarks, found)
	case *registryCharts:
		err = charts.list(ctx, found)
	}
	if err != nil {
		p.result.Refused = found
		return err
	}
	if stored := p.stored(); stored != nil {
		found.Current = withoutGeneration(stored.Revision, found)
	}
	found.Current = cmp.Or(p.lockedVersion(), found.Current)
	if found.Exact {
		found.Current = found.Constraint
		found.advance(p.r.o.Level)
	}
	p.result.Published = found
	return nil
}

func (p *Published) advance(level resolve.Level) {
	if next, ok := resolve.Next(p.Versions, p.Current, level); ok && level != "" {
		p.Next = next.Version
	}
}

// withoutGeneration returns the version of a chart without the object's generation, which may be appended to its revision.
func withoutGeneration(revision string, found *Published) string {
	if _, ok := found.Find(revision); ok {
		return revision
	}
	short := revision[:max(strings.LastIndexAny(revision, "+."), 0)]
	if _, ok := found.Find(short); ok {
		return short
	}
	return revision
}

func (c *indexCharts) list(ctx context.Context, w *remarks, found *Published) error {
	candidates, err := c.published(ctx, w, found.Chart)
	if err == nil {
		chosen, unmatched := resolve.ChooseFromIndex(found.Chart, candidates, found.Constraint)
		err = found.choose(candidates, chosen.Version, unmatched)
	}
	if err != nil {
		return c.refused(err)
	}
	return nil
}

func (c *registryCharts) list(ctx context.Context, found *Published) error {
	tags, err := c.tags(ctx, found.Chart)
	candidates := resolve.FromTags(tags)
	if found.Exact && strings.HasPrefix(found.Constraint, "v") { // spelled as the tag, which no range matches
		tags, err = withUnversioned(tags, err)
		candidates = resolve.TagCandidates(tags, true)
	}
	if err != nil {
		return pullFailure(err)
	}
	chosen, err := resolve.ChooseFromTags(tags, found.Constraint)
	if found.Exact && slices.Contains(tags, found.Constraint) { // also a version that no range matches
		chosen.Version, err = found.Constraint, nil
	}
	if err = found.choose(candidates, chosen.Version, err); err != nil {
		return pullFailure(err)
	}
	return nil
}

// choose records the published versions and the wanted one. An exact version that is no longer published is not an
// error: the result of this command is the list of versions that are.
func (p *Published) choose(candidates []resolve.Candidate, wanted string, err error) error {
	if err != nil && !errors.Is(err, resolve.ErrNoMatch) {
		return err
	}
	p.Versions, p.Wanted = resolve.NewestFirst(candidates), wanted
	var unordered error
	if p.takes, unordered = resolve.Takes(p.Constraint); unordered != nil { // a published version that is not semantic
		p.takes = func(c resolve.Candidate) bool { return c.Version == p.Constraint }
	}
	if p.Exact {
		return nil
	}
	return err
}

func (p *ociReconciliation) listArtifacts(ctx context.Context, obj *sourcev1.OCIRepository) error {
	repo, err := p.openOCIRepository(ctx, obj)
	if err != nil {
		return err
	}
	tags, err := repo.tags(ctx)
	if err != nil {
		return ociFailure(status.ReadOperationFailed, err)
	}
	ref, resolution := validate.ArtifactReference(obj), ociResolution(obj)
	found := &Published{Chart: resolution.Chart, Constraint: resolution.Constraint, Exact: ref.SemVer == "" || ref.Digest != ""}
	helm := obj.GetLayerMediaType() == oci.HelmChartType
	candidates := resolve.TagCandidates(tags, helm)
	for i := range candidates {
		candidates[i].Version = candidates[i].Tag // a manifest names the tag
	}
	found.Versions = resolve.NewestFirst(candidates)
	switch {
	case ref.Digest != "":
		found.Current, found.Wanted = cmp.Or(ref.Tag, ref.Digest), cmp.Or(ref.Tag, ref.Digest)
	case ref.SemVer != "":
		wanted, err := resolve.NewTagRange(ref.SemVer, ref.SemverFilter, helm)
		if err != nil {
			return ociFailure(status.ReadOperationFailed, err)
		}
		if found.Wanted, err = wanted.Choose(tags); err != nil {
			return ociFailure(status.ReadOperationFailed, err)
		}
		found.takes = wanted.Takes
		if stored := p.stored(); stored != nil {
			found.Current, _, _ = strings.Cut(stored.Revision, "@")
		}
		found.Current = cmp.Or(p.lockedVersion(), found.Current)
	default:
		found.Current = found.Constraint
		if slices.Contains(tags, found.Constraint) {
			found.Wanted = found.Constraint
		}
	}
	if ref.SemVer == "" && ref.Tag != "" {
		found.advance(p.r.o.Level)
	}
	if found.Next != "" && ref.Digest != "" {
		digest, err := repo.Digest(ctx, found.Next)
		if err != nil {
			return ociFailure(status.OCIPullFailed, fmt.Errorf("failed to determine artifact digest: %w", err))
		}
		found.NextDigest = digest.String()
	}
	if found.takes == nil {
		found.takes = func(c resolve.Candidate) bool { return c.Tag == found.Current }
	}
	p.result.Published = found
	return nil
}
