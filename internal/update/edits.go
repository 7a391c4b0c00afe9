package update

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/file"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/marked"
	"github.com/helmsrc/helmsrc/internal/reconcile"
)

func (u *Update) edit(p *parsedFile, c *Change) {
	at := slices.IndexFunc(p.edited, func(other *Change) bool { return other.node == c.node })
	if at >= 0 && p.edited[at].To != c.To {
		u.refused(c, fmt.Errorf("another cluster sets it to %s", p.edited[at].To))
	}
	if c.From == c.To || at >= 0 {
		return
	}
	head := marked.ObjectOf(c.document.Root)
	if head.Kind != "" && head.Name != "" {
		c.Object = head.Kind + "/" + head.Name
	}
	if err := c.document.Set(c.node, c.To); err != nil {
		u.refused(c, err)
		return
	}
	p.edited = append(p.edited, c)
}

func (u *Update) refused(c *Change, err error) {
	kind, name, _ := strings.Cut(c.By, " ")
	namespace, name, _ := strings.Cut(name, "/")
	u.w.ReportEdit(finding.NotEdited, at(kind, policyKey{namespace, name}, c.File, c.Line), "cannot be set to "+c.To+": "+err.Error())
	u.fail(exit.Failed)
}

// advance sets the versions that --level allows.
func (u *Update) advance(results []*reconcile.Result) {
	for _, r := range results {
		p := r.Published
		if p == nil || p.Next == "" {
			continue
		}
		obj := r.Object.Object
		if c, ok := p.Find(p.Next); ok && c.Deprecated {
			u.w.Console.About(console.LevelWarning, console.ObjectSubject(obj), fmt.Sprintf("version '%s' is deprecated", p.Next), finding.Finding{Code: finding.DeprecatedChart})
		}
		if obj.Kind != sourcev1.OCIRepositoryKind {
			u.move(r, p.Current, p.Next, "spec", "version")
			continue
		}
		if p.NextDigest == "" {
			u.move(r, p.Current, p.Next, "spec", "ref", "tag")
			continue
		}
		u.moveBoth(r)
	}
}

// moveBoth moves a tag and the digest next to it, or neither of them.
func (u *Update) moveBoth(r *reconcile.Result) {
	spec := r.Object.Typed.(*sourcev1.OCIRepository).Spec
	file, tag := u.scalar(r, r.Published.Current, r.Published.Next, "spec", "ref", "tag")
	if tag == nil {
		return
	}
	other, digest := u.scalar(r, spec.Reference.Digest, r.Published.NextDigest, "spec", "ref", "digest")
	if digest == nil {
		return
	}
	u.edit(file, tag)
	u.edit(other, digest)
}

func (u *Update) move(r *reconcile.Result, from, to string, path ...any) {
	if p, c := u.scalar(r, from, to, path...); c != nil {
		u.edit(p, c)
	}
}

// scalar returns the scalar that holds a field of an object. It returns nil if the scalar follows a policy, or is not found,
// which it reports.
func (u *Update) scalar(r *reconcile.Result, from, to string, fields ...any) (*parsedFile, *Change) {
	obj := r.Object.Object
	pos := obj.Position(fields...)
	if obj.Origin != nil {
		obj = obj.Origin
	}
	_, namespace, name := obj.Called()
	c := &Change{
		File: pos.File, Line: pos.Line, From: from, To: to, By: fmt.Sprintf("%s %s/%s", obj.Kind, namespace, name),
		Chart: path.Base(r.Published.Chart), Was: r.Published.Current, Now: r.Published.Next,
	}
	file := u.found.File(pos.File)
	if file == nil {
		u.refused(c, errors.New(finding.NotNamed))
		return nil, nil
	}
	p := u.parse(file)
	key, _ := fields[len(fields)-1].(string)
	c.document, c.node = marked.At(p.Documents(), pos.Line, key, from)
	if c.node != nil {
		c.Line = c.document.Line(c.node)
	} else {
		c.document, c.node = p.inPatch(pos.Line, key, from)
	}
	switch {
	case c.node == nil && marked.Within(p.Documents(), pos.Line, key, from):
		u.refused(c, fmt.Errorf("it is in a patch that is folded or in quotes, whose lines are not those of the file: write the patch with |"))
		return nil, nil
	case c.node == nil:
		u.refused(c, fmt.Errorf("there is no %s with the value %q: it comes from a kustomization, a variable or an alias", key, from))
		return nil, nil
	case marked.Sealed(c.document.Root):
		u.refused(c, fmt.Errorf("SOPS keeps a checksum of the whole document: edit it with sops"))
		return nil, nil
	case slices.ContainsFunc(marked.Fields(c.document), func(f marked.Field) bool { return f.Node == c.node }):
		return nil, nil
	}
	c.File = file.Name
	return p, c
}

// mask hides the replaced value of an edit if it may be a password: a line with a marker may hold one.
func (p *parsedFile) mask() {
	private, lines := load.PrivateLinesOf(p.File), strings.Split(string(p.file.Data), "\n")
	for _, c := range p.edited {
		if shown := private.Shown(c.Line, lines[c.Line-1], c.From); shown != c.From {
			c.From, c.Was = shown, ""
		}
	}
}

// Finish sets the values that the policies of all clusters choose, and the versions of the results, and writes the files.
func (u *Update) Finish(ctx context.Context, results []*reconcile.Result) {
	u.resolve()
	u.advance(results)
	for _, p := range u.files() {
		if len(p.edited) == 0 || ctx.Err() != nil {
			continue
		}
		text, edits, refusals := p.apply()
		for _, c := range p.edited {
			if err := refusals[c.node]; err != nil {
				u.refused(c, err)
			}
		}
		if edits == 0 {
			continue
		}
		if u.o.DryRun {
			u.Diffs = append(u.Diffs, u.w.Diff(p.file, p.File, text)...)
		} else if !u.o.Check {
			if err := p.file.Replace(text); err != nil {
				u.w.ReportEdit(finding.NotEdited, at("", policyKey{}, p.file.Name, 0), file.Cause(err).Error())
				u.fail(exit.Failed)
				continue
			}
		}
		u.Files++
		p.mask()
		slices.SortStableFunc(p.edited, func(a, b *Change) int { return cmp.Compare(a.Line, b.Line) })
		for _, c := range p.edited {
			if refusals[c.node] == nil {
				u.Changes = append(u.Changes, *c)
			}
		}
	}
}
