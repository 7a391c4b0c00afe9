package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/migrate"
	"github.com/helmsrc/helmsrc/internal/plan"
)

// proof is what became of the HelmReleases whose source is written in another way.
type proof struct {
	same    []proven
	differ  []proven // these must stay as they are
	unknown []proven
}

// proven is a HelmRelease with what was found.
type proven struct {
	id   migrate.ID
	file string
	text string
	code int // of what failed
}

// sides are the manifests before and after the edits.
type sides struct {
	before, after *foresee.Side
}

func (s *sides) close() {
	s.before.Close()
	s.after.Close()
}

// lookIntoIndexes finds out which HTTP repositories lead to a registry.
func (m *Migration) lookIntoIndexes(ctx context.Context) error {
	s := &sides{}
	defer s.close()
	quiet := m.Silent()
	var err error
	if s.before, err = quiet.Before(m.inputs); err != nil {
		return err
	}
	s.before.LeaveOperated()
	wanted := map[plan.ID]bool{}
	for _, r := range s.before.Releases {
		if r.Quick && r.Fact.Blocked == "" && m.indexed(r) {
			wanted[r.Fact.ID] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := s.before.Resolve(ctx, func(r *foresee.Release) bool { return wanted[r.Fact.ID] }, false); err != nil {
		return err
	}
	m.registry = map[migrate.ID]string{}
	for _, r := range s.before.Releases {
		id := migrate.ID{Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}
		if strings.HasPrefix(r.URL, "oci://") {
			m.registry[id], _, _ = manifest.SplitReference(r.URL)
		}
		if wanted[r.Fact.ID] && r.URL == "" {
			m.report(finding.NotCompared, migrate.Note{ID: id, File: r.Object.Pos.File, Line: r.Object.Pos.Line,
				Text: "it is not known whether its chart is in a registry: " + cmp.Or(r.Fact.Blocked, "no version was found")})
		}
	}
	return nil
}

// indexed reports whether a release takes its chart from an HTTP repository.
func (m *Migration) indexed(r *foresee.Release) bool {
	ref := r.Chart().Spec.SourceRef
	adm, err := r.In.Inventory.Find(ref.Kind, cmp.Or(ref.Namespace, r.Object.Namespace), ref.Name)
	if err != nil {
		return false
	}
	url := manifest.At[string](adm.Content, "spec", "url")
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

// proveOnce resolves the releases that the edits concern, before and after them.
func (m *Migration) proveOnce(ctx context.Context) (*proof, error) {
	s := &sides{}
	defer s.close()
	quiet := m.Silent()
	var err error
	if s.before, err = quiet.Before(m.inputs); err != nil {
		return nil, err
	}
	inputs, err := quiet.Worker.Inputs(file.Instead(ctx, m.texts()), m.Options.Load)
	if err != nil {
		return nil, fmt.Errorf("after the edits: %w", err)
	}
	if s.after, err = quiet.Side(inputs); err != nil {
		return nil, err
	}
	s.before.LeaveOperated()
	s.after.LeaveOperated()
	pairs := plan.Match(s.before.Facts(), s.after.Facts())
	differs := map[plan.ID]bool{}
	for _, p := range pairs {
		if p.Differs() {
			differs[p.After.ID] = true
		}
	}
	wanted := func(r *foresee.Release) bool { return differs[r.Fact.ID] }
	if err := errors.Join(s.before.Resolve(ctx, wanted, true), s.after.Resolve(ctx, wanted, true)); err != nil {
		return nil, err
	}
	p := &proof{}
	operated, err := m.operated(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, pair := range pairs {
		if pair.Before == nil {
			p.compareOperated(s, s.after.Of(pair.After), operated)
		}
		p.compare(s, pair)
	}
	p.compareOthers(s)
	if m.o.Must {
		for _, d := range p.unknown {
			d.text = "it is not known whether its chart stays the same: " + d.text
			p.differ = append(p.differ, d)
		}
		p.unknown = nil
	}
	if s.after.Code > s.before.Code && len(p.differ) == 0 {
		p.differ = append(p.differ, proven{text: "the manifests cannot be built any more", code: s.after.Code})
	}
	return p, nil
}

// compare says what the edits make of a release.
func (p *proof) compare(s *sides, pair plan.Pair) {
	switch {
	case pair.Before == nil:
		return
	case pair.After == nil:
		b := s.before.Of(pair.Before)
		p.differ = append(p.differ, proven{id: idOf(b), file: b.Object.Pos.File, text: "it would not be there any more"})
		return
	}
	before, after := s.before.Of(pair.Before), s.after.Of(pair.After)
	found := proven{id: idOf(before), file: before.Object.Pos.String()}
	b, a := pair.Before, pair.After
	switch differs := pair.Before.Origin != pair.After.Origin; {
	case a.Suspended && differs:
		found.text = "it is suspended"
		p.unknown = append(p.unknown, found)
	case b.Blocked == "" && a.Blocked != "":
		found.text, found.code = a.Blocked, s.after.CodeOf(a.ID)
		if found.code == exit.Transient {
			p.unknown = append(p.unknown, found)
			return
		}
		p.differ = append(p.differ, found)
	case b.ValuesKey != a.ValuesKey && b.Blocked == "":
		differ := plan.Reason{Text: "its values would be others"}
		differ.Fields, differ.Omitted = foresee.DifferentValues(before, after)
		found.text = differ.Sentence()
		p.differ = append(p.differ, found)
	case b.Blocked == "" && found.differs(before.Object, after.Object):
		p.differ = append(p.differ, found)
	case !differs:
	case b.Blocked != "":
		found.text, found.code = b.Blocked, s.before.CodeOf(b.ID)
		p.unknown = append(p.unknown, found)
	default:
		p.compareCharts(found, before, after)
	}
}

// compareOthers says what the edits make of all other objects.
func (p *proof) compareOthers(s *sides) {
	type key struct {
		cluster string
		id      migrate.ID
	}
	before := map[key]*manifest.Object{}
	each := func(inputs []*load.Input, visit func(key, *manifest.Object)) {
		for _, in := range inputs {
			for _, o := range in.Inventory.Objects() {
				if o.Origin == nil && o.Kind != helmv2.HelmReleaseKind {
					visit(key{in.Cluster, migrate.ID{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}, o)
				}
			}
		}
	}
	each(s.before.Inputs, func(k key, o *manifest.Object) { before[k] = o })
	each(s.after.Inputs, func(k key, o *manifest.Object) {
		found := proven{id: k.id, file: o.Pos.String()}
		if old := before[k]; old != nil && found.differs(old, o) {
			p.differ = append(p.differ, found)
		}
	})
}

// differs reports whether an object is another one in more than the version.
func (d *proven) differs(before, after *manifest.Object) bool {
	fields := migrate.Differences(before.Content, after.Content)
	d.text = strings.Join(fields, ", ") + " would be different"
	return len(fields) > 0
}

func (p *proof) compareCharts(found proven, before, after *foresee.Release) {
	b, a := before.Fact.Chart, after.Fact.Chart
	if b == nil || a == nil || before.Artifact == "" || after.Artifact == "" {
		found.text = "no chart was found"
		p.unknown = append(p.unknown, found)
		return
	}
	old, now := foresee.ContentDigest(before.Store, before.Artifact), foresee.ContentDigest(after.Store, after.Artifact)
	version, _, _ := strings.Cut(a.Version, "+")
	switch {
	case old == "" || now == "":
		found.text = "the chart cannot be read"
		p.unknown = append(p.unknown, found)
	case old != now || b.Name != a.Name:
		found.text = fmt.Sprintf("its chart would be %s %s (%s), and not %s %s (%s)", a.Name, version, digest.Short(now), b.Name, b.Version, digest.Short(old))
		p.differ = append(p.differ, found)
	default:
		found.text = fmt.Sprintf("the same chart before and after: %s %s (%s)", b.Name, b.Version, cmp.Or(b.Digest, now))
		p.same = append(p.same, found)
	}
}

func idOf(r *foresee.Release) migrate.ID {
	return migrate.ID{Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}
}

// leave leaves out the releases that would change, and reports them. It is false if that is no way to go on.
func (m *Migration) leave(p *proof) bool {
	more := false
	for _, d := range p.differ {
		if d.id.Name == "" || m.left[d.id] {
			return false
		}
		m.left[d.id], more = true, true
		m.sayOf(finding.ChangesChart, d, "it stays as it is: ")
		m.fail(cmp.Or(d.code, exit.Failed))
	}
	return more
}

func (m *Migration) sayOf(code finding.Code, d proven, prefix string) {
	at, _, _ := strings.Cut(d.file, ":")
	line := 0
	_, _ = fmt.Sscanf(strings.TrimPrefix(d.file, at+":"), "%d", &line)
	m.report(code, migrate.Note{ID: d.id, File: at, Line: line, Text: prefix + d.text})
}

// say prints what was found.
func (p *proof) say(m *Migration) {
	if p == nil {
		return
	}
	for _, d := range p.same {
		m.Worker.Console.Info(console.Subject{Kind: d.id.Kind, Namespace: d.id.Namespace, Name: d.id.Name}, d.text)
	}
	for _, d := range p.unknown {
		m.sayOf(finding.NotCompared, d, "it is not known whether its chart stays the same: ")
	}
}
