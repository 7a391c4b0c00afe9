package reconcile

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/status"
)

// Entry returns the lock entry of a result, nil if the object is not locked or was not resolved. The caller fills in the
// cluster and the file.
func (l *Locked) Entry(inv *inventory.Inventory, r *Result) (*lock.Entry, error) {
	j, ok := l.Judge(inv, r.Object)
	if !ok || r.Failure != nil || r.Pin == nil || r.Pin.Source == PinDirectory {
		return nil, nil
	}
	e := entryOf(j.Wanted, r)
	e.Object = objectName(r.Object)
	if hidden := r.hiddenIn(e); hidden != "" {
		return nil, &finding.Problem{
			Code: finding.NotLocked, Text: hidden + " contains a value from a Secret: it is not written to a lock file",
			Advice: "keep variables of Secrets out of names, URLs and versions; objects with them cannot be locked",
		}
	}
	return e, nil
}

// Finding returns an error of a judgement as a finding.
func (j *Judgement) Finding(err error) finding.Finding {
	r := &Result{Object: j.Object, State: Failed, Failure: j.Failure(err)}
	f, _ := r.FailureFinding()
	return f
}

// entryOf returns an entry without the name of its object.
func entryOf(w lock.Wanted, r *Result) *lock.Entry {
	pin := r.Pin
	e := &lock.Entry{SourceKind: w.SourceKind, SourceURL: w.SourceURL, Chart: w.Chart, Constraint: w.Constraint, Version: pin.Version, Revision: pin.Revision}
	switch pin.Source {
	case PinIndex:
		e.URL, e.Digest = archiveURL(pin.URL), pin.Digest
	case PinRegistry:
		e.URL, e.Tag, e.ManifestDigest, e.LayerDigest = pin.URL, strings.ReplaceAll(pin.Version, "+", "_"), pin.Manifest, pin.Digest
	}
	if r.Object.Object.Kind == sourcev1.OCIRepositoryKind {
		e.Version = ""
	}
	for _, name := range w.ValuesFiles {
		e.ValuesFiles = append(e.ValuesFiles, lock.File{Name: name})
	}
	if b := r.Built; b != nil {
		e.Package, e.LayerDigest = b.Package, cmp.Or(b.Layer, e.LayerDigest)
		for i, f := range e.ValuesFiles {
			if at := slices.IndexFunc(b.ValuesFiles, func(o lock.File) bool { return o.Name == f.Name }); at >= 0 {
				e.ValuesFiles[i].Digest = b.ValuesFiles[at].Digest
			}
		}
		if !b.Published.IsZero() && pin.Source == PinIndex {
			e.Published = b.Published.UTC().Format(time.RFC3339)
		}
	}
	for _, d := range r.Dependencies {
		e.Dependencies = append(e.Dependencies, lock.Dependency{
			Name: d.Name, Repository: lockedURL(d.Repository), Constraint: d.Constraint, Version: d.Pin.Version,
			URL: archiveURL(d.Pin.URL), Digest: d.Pin.Digest, ManifestDigest: d.Pin.Manifest,
		})
	}
	e.Signers = r.Signers()
	return e
}

// archiveURL returns a URL that a lock can record and from which an archive can be fetched, or "" if the URL has a user or
// a query.
func archiveURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.RawQuery != "" {
		return ""
	}
	return raw
}

// Signers returns the verified signers of a result as text.
func (r *Result) Signers() []string {
	var signers []string
	if s := r.Signature; s != nil {
		text := cmp.Or(s.Identity, s.Key)
		if s.Identity != "" && s.Issuer != "" {
			text += " (" + s.Issuer + ")"
		}
		signers = append(signers, s.Format+" "+text)
	}
	if r.Signed != nil {
		for _, s := range r.Signed.Signatures {
			signers = append(signers, s.Format+" "+s.Key)
		}
	}
	slices.Sort(signers)
	return slices.Compact(signers)
}

// hiddenIn returns the first field of an entry with a value from a Secret, or "".
func (r *Result) hiddenIn(e *lock.Entry) string {
	for _, f := range []struct{ name, text string }{
		{"object", e.Object}, {"sourceURL", e.SourceURL}, {"chart", e.Chart}, {"constraint", e.Constraint}, {"version", e.Version}, {"url", e.URL},
		{"valuesFiles", fmt.Sprint(e.ValuesFiles)}, {"dependencies", fmt.Sprint(e.Dependencies)}, {"revision", e.Revision},
	} {
		if r.Object.Object.ConcealText(f.text) != f.text {
			return f.name
		}
	}
	return ""
}

func withdrawn(code finding.Code) bool {
	return code == finding.NoMatch || code == finding.UnknownChart || code == finding.NotFound || code == finding.GitReference
}

// gone returns the failure of a source that no longer has the locked version: the manifest is correct.
func (l *Locked) gone(err error) error {
	failure := *status.AsFailure(err)
	failure.Err = finding.WithHint(failure.Err, l.File+finding.MayBeDeleted)
	return &failure
}

// takeEntry looks up the entry of the object. It returns an error if the mode requires a matching entry and there is no such entry.
func (p *reconciliation) takeEntry() error {
	l := p.r.o.Locked
	if l == nil || p.r.o.List {
		return nil
	}
	j, ok := l.Judge(p.r.inventory, p.adm)
	if !ok {
		return nil
	}
	if err := j.Err(); err != nil {
		if l.Mode == LockedFirst {
			return nil
		}
		return err
	}
	p.wanted = j.Wanted
	if l.Mode == LockedAsked {
		p.asked = j.Entry
	} else {
		p.locked = j.Entry
	}
	return nil
}

// lockedVersion returns the version in the matching entry of a lock, "" without such an entry.
func (p *reconciliation) lockedVersion() string {
	if p.r.o.Locked == nil {
		return ""
	}
	j, ok := p.r.o.Locked.Judge(p.r.inventory, p.adm)
	if !ok || !j.Fits() {
		return ""
	}
	return cmp.Or(j.Entry.Version, j.Entry.Tag)
}

// compareEntry returns an error if the source's current content differs from the lock, or is missing.
func (p *reconciliation) compareEntry(err error) error {
	if err != nil && p.locked != nil && withdrawn(CodeOf(err)) {
		return p.r.o.Locked.gone(err)
	}
	e := p.asked
	switch {
	case e == nil, err == nil && p.result.Pin == nil:
		return err
	case err != nil && withdrawn(CodeOf(err)):
		return status.Failed.Wrap(otherThanLocked(finding.Moved, "the locked version is no longer published: "+err.Error(), err))
	case err != nil:
		return err
	}
	if differences := e.Moved(entryOf(p.wanted, p.result)); len(differences) > 0 {
		return status.Failed.Wrap(moved("the published version", differences...))
	}
	return nil
}
