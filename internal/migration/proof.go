package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// proof holds the verdicts about the objects of the input.
type proof []proven

// verdict compares an object before and after the edits.
type verdict int

const (
	untouched verdict = iota // the edits do not concern it
	same
	differs // it must not be edited
	unknown
)

// proven is an object with its verdict.
type proven struct {
	cluster string
	id      migrate.ID
	pos     manifest.Pos
	is      verdict
	text    string
	code    int // of the failure
}

// found returns the objects with a verdict.
func (p proof) found(is verdict) []proven {
	return slices.DeleteFunc(slices.Clone(p), func(d proven) bool { return d.is != is })
}

// sides are the manifests before and after the edits.
type sides struct {
	before, after *foresee.Side
}

func (s *sides) close() {
	s.before.Close()
	s.after.Close()
}

// lookIntoIndexes resolves the releases with HTTP repositories, to find those whose index leads to a registry.
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
		id := idOf(r.Object)
		if strings.HasPrefix(r.URL, "oci://") {
			m.registry[id], _, _ = manifest.SplitReference(r.URL)
		}
		if wanted[r.Fact.ID] && r.URL == "" {
			d := proven{cluster: r.In.Cluster, id: id, pos: r.Object.Pos, text: cmp.Or(r.Fact.Blocked, "no version was found")}
			m.sayOf(finding.NotCompared, d, "it is not known whether its chart is in a registry: ")
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

// proveOnce resolves the releases whose source the edits change, before and after the edits, and compares all objects.
func (m *Migration) proveOnce(ctx context.Context) (proof, error) {
	s := &sides{}
	defer s.close()
	quiet := m.Silent()
	var err error
	if s.before, err = quiet.Before(m.inputs); err != nil {
		return nil, err
	}
	inputs, err := quiet.Worker.Inputs(file.WithTexts(ctx, m.texts()), m.Options.Load)
	if err != nil {
		return nil, fmt.Errorf("after the edits: %w", err)
	}
	if s.after, err = quiet.Side(inputs); err != nil {
		return nil, err
	}
	s.before.LeaveOperated()
	s.after.LeaveOperated()
	pairs := plan.Match(s.before.Facts(), s.after.Facts())
	moved := map[plan.ID]bool{}
	for _, p := range pairs {
		if p.Differs() {
			moved[p.After.ID] = true
		}
	}
	wanted := func(r *foresee.Release) bool { return moved[r.Fact.ID] }
	if err := errors.Join(s.before.Resolve(ctx, wanted, true), s.after.Resolve(ctx, wanted, true)); err != nil {
		return nil, err
	}
	operated, err := m.operated(ctx, s)
	if err != nil {
		return nil, err
	}
	var p proof
	for _, pair := range pairs {
		if pair.Before == nil {
			p = append(p, s.compareOperated(s.after.Of(pair.After), operated))
		} else {
			p = append(p, s.compare(pair))
		}
	}
	p = append(p, s.compareOthers()...)
	for i := range p {
		if m.o.Must && p[i].is == unknown {
			p[i].is, p[i].text = differs, notKnown+p[i].text
		}
	}
	if s.after.Code > s.before.Code && len(p.found(differs)) == 0 {
		p = append(p, proven{is: differs, text: "the manifests cannot be built any more", code: s.after.Code})
	}
	return p, nil
}

const notKnown = "it is not known whether its chart stays the same: "

// compare compares a release before and after the edits.
func (s *sides) compare(pair plan.Pair) proven {
	before, after := s.before.Of(pair.Before), s.after.Of(pair.After)
	found := proven{cluster: before.In.Cluster, id: idOf(before.Object), pos: before.Object.Pos}
	b, a := pair.Before, pair.After
	switch {
	case a == nil:
		found.is, found.text, found.pos.Line = differs, "it would no longer exist", 0
	case a.Suspended && b.Origin != a.Origin:
		found.is, found.text = unknown, "it is suspended"
	case b.Blocked == "" && a.Blocked != "":
		found.is, found.text, found.code = differs, a.Blocked, s.after.CodeOf(a.ID)
		if found.code == exit.Transient {
			found.is = unknown
		}
	case b.ValuesKey != a.ValuesKey && b.Blocked == "":
		differ := plan.Reason{Text: "its values would change"}
		differ.Fields, differ.Omitted = foresee.DifferentValues(before, after)
		found.is, found.text = differs, differ.Sentence()
	case b.Blocked == "" && found.differs(before.Object, after.Object):
	case b.Origin == a.Origin:
	case b.Blocked != "":
		found.is, found.text, found.code = unknown, b.Blocked, s.before.CodeOf(b.ID)
	default:
		found.compareCharts(before, after)
	}
	return found
}

// compareOthers compares all objects that are not releases.
func (s *sides) compareOthers() (p proof) {
	type key struct {
		cluster string
		id      migrate.ID
	}
	before := map[key]*manifest.Object{}
	each := func(inputs []*load.Input, visit func(key, *manifest.Object)) {
		for _, in := range inputs {
			for _, o := range in.Inventory.Objects() {
				if o.Origin == nil && o.Kind != helmv2.HelmReleaseKind {
					visit(key{in.Cluster, idOf(o)}, o)
				}
			}
		}
	}
	each(s.before.Inputs, func(k key, o *manifest.Object) { before[k] = o })
	each(s.after.Inputs, func(k key, o *manifest.Object) {
		found := proven{cluster: k.cluster, id: k.id, pos: o.Pos}
		if old := before[k]; old != nil && found.differs(old, o) {
			p = append(p, found)
		}
	})
	return p
}

// differs reports whether an object differs in more than its API version, and records the fields.
func (d *proven) differs(before, after *manifest.Object) bool {
	fields := migrate.Differences(before.Content, after.Content)
	if len(fields) > 0 {
		d.is, d.text = differs, strings.Join(fields, ", ")+" would be different"
	}
	return len(fields) > 0
}

func (d *proven) compareCharts(before, after *foresee.Release) {
	b, a := before.Fact.Chart, after.Fact.Chart
	if b == nil || a == nil || before.Artifact == "" || after.Artifact == "" {
		d.is, d.text = unknown, "no chart was found"
		return
	}
	old, now := foresee.ContentDigest(before.Store, before.Artifact), foresee.ContentDigest(after.Store, after.Artifact)
	version, _, _ := strings.Cut(a.Version, "+")
	switch {
	case old == "" || now == "":
		d.is, d.text = unknown, "the chart cannot be read"
	case old != now || b.Name != a.Name:
		d.is = differs
		d.text = fmt.Sprintf("its chart would be %s %s (%s), not %s %s (%s)", a.Name, version, digest.Short(now), b.Name, b.Version, digest.Short(old))
	default:
		d.is, d.text = same, fmt.Sprintf("the same chart before and after: %s %s (%s)", b.Name, b.Version, cmp.Or(b.Digest, now))
	}
}

func idOf(o *manifest.Object) migrate.ID {
	return migrate.ID{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// leave leaves out the releases that would change, and reports them. It returns false if there is nothing more to leave out.
func (m *Migration) leave(p proof) bool {
	more := false
	for _, d := range p.found(differs) {
		if d.id.Name == "" || m.left[d.id] {
			return false
		}
		m.left[d.id], more = true, true
		m.sayOf(finding.ChangesChart, d, "it is not changed: ")
		m.fail(cmp.Or(d.code, exit.Failed))
	}
	return more
}

func (m *Migration) sayOf(code finding.Code, d proven, prefix string) {
	m.Worker.Console.In(d.cluster)
	defer m.Worker.Console.In("")
	m.report(code, migrate.Note{ID: d.id, File: d.pos.File, Line: d.pos.Line, Text: prefix + d.text})
}

// say prints the releases whose charts stay the same, and those that cannot be compared.
func (m *Migration) say(p proof) {
	for _, d := range p.found(same) {
		m.Worker.Console.In(d.cluster)
		m.Worker.Console.Info(console.Subject{Kind: d.id.Kind, Namespace: d.id.Namespace, Name: d.id.Name}, d.text)
	}
	m.Worker.Console.In("")
	for _, d := range p.found(unknown) {
		m.sayOf(finding.NotCompared, d, notKnown)
	}
}
