package reconcile

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/lock"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// Locked holds the lock that a run applies to its objects. It does not change during the run.
type Locked struct {
	Lock    *lock.Lock
	File    string // file name, for messages
	Cluster string // name of the input in the lock
	Mode    LockMode
	Carried bool // the lock is part of a bundle
	// Again reports whether the entry of an object is ignored.
	Again func(store.Key) bool
}

// LockMode determines how a run uses a lock.
type LockMode int

const (
	// LockedOnly uses the entry of every object. An object without a matching entry fails.
	LockedOnly LockMode = iota
	// LockedFirst resolves objects without a matching entry again.
	LockedFirst
	// LockedAsked requests the locked versions from the sources, and fails an object whose source now has other content.
	LockedAsked
	// LockedAnyway uses entries even if they do not match their objects, to reproduce an earlier state.
	LockedAnyway
)

// Judgement is the result of comparing an object with its entry in a lock.
type Judgement struct {
	Object *admission.Admitted
	Wanted lock.Wanted // what the object requires
	Entry  *lock.Entry // may be nil
	// Several holds the clusters whose entries of the object differ, if the input is not exactly one of them.
	Several []string
	Misfits []Misfit // fields in which the entry does not match
	err     error    // why the object's requirements are unknown
	file    string
	carried bool
}

// Misfit is a field in which an entry does not match its object.
type Misfit struct {
	lock.Difference
	Position string // FILE:LINE of the field in the manifest, "" without a file
	path     []any  // of the field, if the object has it
}

// Fits reports whether the entry can be used.
func (j *Judgement) Fits() bool { return j.Entry != nil && len(j.Misfits) == 0 }

// Err returns why the entry cannot be used, nil if it can.
func (j *Judgement) Err() error {
	switch {
	case j.err != nil:
		return j.err
	case j.Fits():
		return nil
	}
	return status.NotLocked.Wrap(j.problem())
}

// Failure returns an error of a judgement as the failure of an object in a run.
func (j *Judgement) Failure(err error) *status.Failure { return status.AsFailure(err) }

// Judge looks up the entry of an object and compares it. It returns false for objects that are not locked: those that
// select no version, have no source, or are suspended.
func (l *Locked) Judge(inv *inventory.Inventory, adm *admission.Admitted) (*Judgement, bool) {
	wanted, places, ok, err := l.wanted(inv, adm)
	if !ok {
		return nil, false
	}
	j := &Judgement{Object: adm, Wanted: wanted, err: err, file: l.File, carried: l.Carried}
	if err != nil {
		return j, true
	}
	if l.Again != nil && l.Again(keyOf(adm)) {
		return j, true
	}
	for _, e := range l.Lock.Find(lock.Key{Cluster: l.Cluster, Object: objectName(adm)}) {
		misfits := places.misfits(e.Fits(wanted))
		if l.Mode == LockedAnyway {
			misfits = nil
		}
		switch {
		case j.Entry == nil, len(j.Misfits) > 0 && len(misfits) == 0:
			j.Entry, j.Misfits = e, misfits
		case len(j.Misfits) == 0 && len(misfits) == 0 && len(j.Entry.Moved(e)) > 0:
			j.Several = append(j.Several, j.Entry.Cluster, e.Cluster)
		}
	}
	if j.Several != nil {
		slices.Sort(j.Several)
		j.Several, j.Entry = slices.Compact(j.Several), nil
	}
	return j, true
}

func objectName(adm *admission.Admitted) string {
	obj := adm.Object
	return obj.Kind + "/" + obj.Namespace + "/" + obj.Name
}

// wanted returns the requirements of an object, and the positions of their fields.
func (l *Locked) wanted(inv *inventory.Inventory, adm *admission.Admitted) (lock.Wanted, places, bool, error) {
	w, p := lock.Wanted{SourceKind: adm.Object.Kind}, places{object: adm}
	switch obj := adm.Typed.(type) {
	case *sourcev1.HelmChart:
		if obj.Spec.Suspend {
			return w, p, false, nil
		}
		return l.wantedChart(inv, adm, obj)
	case *sourcev1.OCIRepository:
		w.SourceURL, w.Constraint = lockedURL(obj.Spec.URL), ociConstraint(obj)
		p.fields = map[string][]any{"sourceURL": {"spec", "url"}, "constraint": {"spec", "ref"}}
		return w, p, !obj.Spec.Suspend, nil
	case *sourcev1.GitRepository:
		w.SourceURL, w.Constraint = lockedURL(obj.Spec.URL), gitConstraint(obj.Spec.Reference)
		p.fields = map[string][]any{"sourceURL": {"spec", "url"}, "constraint": {"spec", "ref"}}
		return w, p, !obj.Spec.Suspend, nil
	case *sourcev1.Bucket:
		w.SourceURL, w.Constraint = bucketURL(obj), obj.Spec.Prefix
		p.fields = map[string][]any{"sourceURL": {"spec", "endpoint"}, "constraint": {"spec", "prefix"}}
		return w, p, !obj.Spec.Suspend, nil
	}
	return w, p, false, nil
}

// wantedChart returns the requirements of a HelmChart. The revision of a tree is taken from the entry of its source.
func (l *Locked) wantedChart(inv *inventory.Inventory, adm *admission.Admitted, obj *sourcev1.HelmChart) (w lock.Wanted, p places, ok bool, err error) {
	ref := obj.Spec.SourceRef
	if !slices.Contains(chartSources(), ref.Kind) {
		return w, p, false, nil
	}
	source, err := inv.FindFor(adm.Object, ref.Kind, obj.Namespace, ref.Name)
	if err != nil {
		return w, p, true, status.SourceUnavailable.Wrap(&inventory.UnavailableError{Kind: ref.Kind, Name: ref.Name, Err: err})
	}
	w = lock.Wanted{SourceKind: ref.Kind, Chart: obj.Spec.Chart, ValuesFiles: chart.EffectiveValuesFiles(obj.Spec.ValuesFiles)}
	p = places{object: adm, source: source, fields: map[string][]any{
		"sourceKind": {"spec", "sourceRef", "kind"}, "chart": {"spec", "chart"}, "constraint": {"spec", "version"}, "valuesFiles": {"spec", "valuesFiles"},
	}}
	switch repo := source.Typed.(type) {
	case *sourcev1.HelmRepository:
		w.SourceURL, w.Constraint = lockedURL(repo.Spec.URL), obj.Spec.Version
	case *sourcev1.GitRepository:
		w.SourceURL = lockedURL(repo.Spec.URL)
	case *sourcev1.Bucket:
		w.SourceURL, p.inSource = bucketURL(repo), []any{"spec", "endpoint"}
	}
	if ref.Kind != sourcev1.HelmRepositoryKind {
		w.Revision = unlockedRevision
		if of, ok := l.Judge(inv, source); ok && of.Fits() {
			w.Revision = of.Entry.Revision
		} else if !ok { // suspended: its artifact is not requested again
			w.Revision = ""
		}
	}
	return w, p, true, nil
}

// chartSources returns the kinds of sources that a HelmChart can have. An
// OCIRepository is a source of HelmReleases only.
func chartSources() []string {
	return []string{sourcev1.HelmRepositoryKind, sourcev1.GitRepositoryKind, sourcev1.BucketKind}
}

// unlockedRevision is the revision of a source without a matching entry.
const unlockedRevision = "not locked"

type places struct {
	object, source *admission.Admitted
	fields         map[string][]any // fields of the object
	inSource       []any            // path of the source's URL, nil for spec.url
}

func (p places) misfits(differences []lock.Difference) []Misfit {
	var list []Misfit
	for _, d := range differences {
		m := Misfit{Difference: d, path: p.fields[d.Field]}
		at := p.object
		path := m.path
		if path == nil && d.Field == "sourceURL" {
			at, path = p.source, p.inSource
			if path == nil {
				path = []any{"spec", "url"}
			}
		}
		if path != nil && at != nil {
			if pos := at.Object.Excerpt(path...).Pos; pos.File != "" {
				m.Position = fmt.Sprintf("%s:%d", pos.File, pos.Line)
			}
		}
		list = append(list, m)
	}
	return list
}

// lockedURL returns a URL as a lock records it: without query, fragment and possible credentials.
func lockedURL(raw string) string {
	u, err := auth.ParseURL(raw)
	if err != nil {
		return auth.RedactURL(raw)
	}
	return withoutSecrets(u).String()
}

func withoutSecrets(u *url.URL) *url.URL {
	public := *u
	public.RawQuery, public.ForceQuery, public.Fragment, public.RawFragment = "", false, "", ""
	if _, password := u.User.Password(); password || u.Scheme != "ssh" {
		public.User = nil
	}
	return &public
}

func bucketURL(obj *sourcev1.Bucket) string {
	return lockedURL(obj.Spec.Endpoint) + "/" + obj.Spec.BucketName
}

func ociConstraint(obj *sourcev1.OCIRepository) string {
	ref := validate.ArtifactReference(obj)
	switch {
	case ref.Digest != "":
		return "digest " + ref.Digest
	case ref.SemVer != "" && ref.SemverFilter != "":
		return "semver " + ref.SemVer + " of tags that match " + ref.SemverFilter
	case ref.SemVer != "":
		return "semver " + ref.SemVer
	}
	return "tag " + cmp.Or(ref.Tag, defaultTag)
}

// gitConstraint returns spec.ref as text. The first field that is set has precedence.
func gitConstraint(ref *sourcev1.GitRepositoryRef) string {
	switch {
	case ref == nil:
		return "branch " + defaultBranch
	case ref.Commit != "":
		return "commit " + ref.Commit
	case ref.Name != "":
		return "name " + ref.Name
	case ref.SemVer != "":
		return "semver " + ref.SemVer
	case ref.Tag != "":
		return "tag " + ref.Tag
	}
	return "branch " + cmp.Or(ref.Branch, defaultBranch)
}

// defaultBranch is the branch of a GitRepository without spec.ref.
const defaultBranch = "master"

// problem returns the error of an object without a usable entry.
func (j *Judgement) problem() error {
	p := &finding.Problem{
		Code: finding.NotLocked, Class: finding.Drifted,
		Advice: "'helmsrc lock' with the same input adds missing entries, and keeps matching entries",
	}
	if j.carried {
		p.Advice = finding.AnotherBundle
	}
	switch {
	case j.Several != nil:
		p.Text, p.Advice = fmt.Sprintf("%s has entries of several clusters that differ: %s", j.file, strings.Join(j.Several, ", ")), finding.OneCluster
		return p
	case j.Entry == nil:
		p.Text = j.file + " has no entry"
		return p
	}
	var bare, placed []string
	for _, m := range j.Misfits {
		part := m.String()
		bare = append(bare, part)
		if m.Position != "" {
			part += " (" + m.Position + ")"
		}
		placed = append(placed, part)
		if p.Field == nil {
			p.Field = m.path
		}
	}
	p.Text, p.Bare = "the entry does not match: "+strings.Join(placed, "; "), "the entry does not match: "+strings.Join(bare, "; ")
	return p
}

// moved returns the error of a source that no longer has the locked content.
func moved(what string, differences ...lock.Difference) error {
	var parts []string
	for _, d := range differences {
		parts = append(parts, d.String())
	}
	return otherThanLocked(finding.Moved, what+" differs from the lock file: "+strings.Join(parts, "; "), nil)
}

// otherThanLocked returns the error of a source whose content differs from the lock. A retry would not help.
func otherThanLocked(code finding.Code, text string, err error) error {
	return &finding.Problem{Code: code, Class: finding.Untrusted | finding.Lasting, Text: text, Advice: finding.AcceptMoved, Err: err}
}

// notLockedBytes returns the error of fetched bytes whose digest differs from the lock.
func notLockedBytes(what string, mismatch *digest.MismatchError) error {
	return otherThanLocked(finding.DigestMismatch, what+" differs from the lock file: "+mismatch.Error(), mismatch)
}

// defaultTag is the tag of an OCIRepository without spec.ref.
const defaultTag = "latest"
