package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
)

// kustomization builds a Kustomization. The resulting objects wait for their variables.
func (b *builder) kustomization(o *manifest.Object) {
	key := o.Namespace + "/" + o.Name
	if first, met := b.kustomizations[key]; met {
		if !b.revises(first, o) {
			if first.Pos != o.Pos && !sameSpec(first, o) {
				b.errs = append(b.errs, &finding.Problem{
					Text:   fmt.Sprintf("Kustomization %s is defined 2 times: %s and %s", key, first.Pos, o.Pos),
					Advice: finding.OneDefinition,
				})
			}
			return
		}
	}
	b.kustomizations[key] = o
	b.judged = append(b.judged, o)
	if err := b.admit(o); err != nil {
		return
	}
	b.locateOrPark(o)
}

// admit records and returns the error with which the API server refuses an object. It does not check old API versions.
func (b *builder) admit(o *manifest.Object) error {
	if b.o.Admit == nil || o.APIVersion != kustomizev1.GroupVersion.String() {
		return nil
	}
	err := b.o.Admit(o)
	if err == nil {
		return nil
	}
	if lost := b.claimUnbuilt(o); lost || !o.ReferenceOnly {
		b.rejections = append(b.rejections, Rejection{o, err})
	}
	return err
}

// locateOrPark builds a Kustomization, or parks it if its source may be fetched.
func (b *builder) locateOrPark(o *manifest.Object) {
	f, err := b.locate(o, b.sources)
	if err == nil {
		b.construct(f)
		return
	}
	if e, elsewhere := errors.AsType[*elsewhereError](err); elsewhere && b.o.Fetch != nil && !o.ReferenceOnly {
		n := Need{e.Source, e.generator != nil}
		if !b.arrived.asked[n] && !b.arrived.lost[n.Source] {
			b.parked = append(b.parked, parked{o, b.from, &n})
			return
		}
	}
	b.unbuilt(o, err)
}

func (b *builder) construct(f *flux) {
	o := f.object
	if f.source != nil {
		b.used[*f.source] = true
	}
	b.noteTree(f)
	if f.made != nil {
		for _, s := range f.made.used {
			b.used[s] = true
		}
	}
	c := newClosure()
	f.from, f.since = b.from, b.withdrawn[f.name()]
	file, k, err := f.kustomization(c)
	c.of = f.name()
	b.claim(c)
	b.supersede(f, c)
	b.concernBuilt(o, c)
	if err == nil {
		err = f.complete(c)
	}
	var replace, shown map[string][]byte
	if err == nil && f.spec.Decryption != nil {
		replace, shown, err = b.keysOf(f).replacements(c, b.display)
	}
	if err == nil {
		f.objects, err = b.buildDecrypted(f, file, k, replace)
	}
	if err != nil {
		if n := b.plan.nodes[f.from]; n.begins && n.object == o {
			b.readAsWritten[n.file] = true // it is applied by hand
		}
		if lost := b.abandon(c); lost || b.touches(c) || !o.ReferenceOnly {
			b.failed(f, c, err)
		}
		return
	}
	b.show(f, c, replace, shown)
	b.warnRemote(c)
	b.warnUnknown(f)
	b.noticeRenamed(f)
	b.warnLinks(o, c)
	if f.spec.Suspend {
		b.notice(Notice{Object: o, Text: "suspended: built anyway"})
	}
	for _, o := range f.objects {
		b.addGenerated(o.content)
	}
	b.waiting = append(b.waiting, f)
}

// noteTree records the directory of a Kustomization's source, unless it is only assumed because the path exists.
func (b *builder) noteTree(f *flux) {
	source := sourceRef(f.object)
	url := urlOf(f.artifact.source)
	here := b.begins(source) || url != "" && slices.Contains(b.checkout(f.repo.root).remotes, lastSegment(url))
	if f.source != nil || here && b.disk.repository(f.repo.root) == f.repo.root {
		b.trees[source] = f.repo.root
	}
}

// noticeRenamed notes that a source is assumed to be this repository although no remote has the name in its URL.
func (b *builder) noticeRenamed(f *flux) {
	ref, remotes := sourceRef(f.object), b.checkout(f.repo.root).remotes
	names := b.ownURLs // of a FluxInstance, whose source is not in a file
	if f.artifact.source != nil {
		names = []string{lastSegment(urlOf(f.artifact.source))}
	}
	known := func(name string) bool { return name == "" || slices.Contains(remotes, name) }
	if f.source != nil || !f.artifact.git || len(remotes) == 0 || len(names) == 0 || slices.ContainsFunc(names, known) {
		return
	}
	why := "the cluster begins with it"
	if !b.begins(ref) {
		why = "a remote has the same owner, and paths of its Kustomizations are here"
	}
	b.notice(Notice{Text: fmt.Sprintf("%s %s/%s is assumed to be this repository under another name, although no remote of the checkout has the name in its URL: %s",
		ref.Kind, ref.Namespace, ref.Name, why),
		Hint: fmt.Sprintf(finding.SayWhatItIs, ref.Kind, ref.Namespace, ref.Name)})
}

// warnUnknown reports the fields that the controller drops where it edits the kustomization file.
func (b *builder) warnUnknown(f *flux) {
	d := f.repo.directory(f.path)
	if d == nil {
		return
	}
	for _, unknown := range d.unknown {
		text := fmt.Sprintf("of %s: %v: kustomize-controller drops the field, and kustomize refuses the file", f.name(), unknown.err)
		b.warnAt(finding.UnknownKustomizeField, d.object, text, "correct the name of the field, or remove it", unknown.at.Pos)
	}
}

// warnLinks warns of the links that a build leaves out.
func (b *builder) warnLinks(o *manifest.Object, c *closure) {
	if o.ReferenceOnly {
		return
	}
	for _, link := range c.links {
		b.notice(Notice{Code: finding.OutsideLink, Excerpt: manifest.Excerpt{Pos: manifest.Pos{File: link.Name}}, Text: link.Text()})
	}
}

// buildDecrypted builds with decrypted files. An error may quote them, so the error of a build without them is returned instead,
// or one without details.
func (b *builder) buildDecrypted(f *flux, file string, k *types.Kustomization, replace map[string][]byte) ([]built, error) {
	result := b.buildOnce(f.repo, f.path, file, k, replace)
	if err := result.err; err == nil || len(replace) == 0 || b.ctx.Err() != nil {
		b.notePatches(f.repo, f.object, result.patches)
		return result.objects, err
	}
	if err := b.buildOnce(f.repo, f.path, file, k, nil).err; err != nil {
		return nil, err
	}
	var names []string
	for _, path := range slices.Sorted(maps.Keys(replace)) {
		names = append(names, b.display(path))
	}
	return nil, fmt.Errorf("a file encrypted with SOPS cannot be used; the error is not shown, because it may quote the file: check %s with sops decrypt", strings.Join(names, ", "))
}

func (b *builder) failed(f *flux, c *closure, err error) {
	if parse := c.unparsed(err); parse != nil {
		b.errs = append(b.errs, spoiledBy(parse, f.name(), err))
		return
	}
	if _, reported := errors.AsType[*manifest.ObjectError](err); reported {
		b.errs = append(b.errs, err)
		return
	}
	b.silenced = append(b.silenced, f.spec.TargetNamespace) // the missing objects may be referred to
	at := f.object.Excerpt("spec", "path")
	if placed := deepestMistake(err); placed != nil {
		at, err = placed.at, placed.err
	} else if patch, ok := errors.AsType[*specPatchError](err); ok {
		at = f.object.Excerpt("spec", "patches", patch.index)
	}
	b.errs = append(b.errs, manifest.FaultAt(f.object, at, &buildError{err: err}))
}

func (b *builder) unbuilt(o *manifest.Object, err error) {
	if _, unmade := errors.AsType[*unmadeError](err); unmade {
		b.partial = append(b.partial, o)
		_ = b.claimUnbuilt(o)
		return
	}
	if elsewhere, ok := errors.AsType[*elsewhereError](err); ok {
		b.partial = append(b.partial, o)
		if o.ReferenceOnly {
			return
		}
		if g := elsewhere.generator; g != nil {
			b.warn(finding.SourceElsewhere, g, elsewhere.Error(), elsewhere.Hint(), "spec", "sources", elsewhere.at)
			return
		}
		text := elsewhere.Error()
		if at := b.pathHere(o); !b.plan.known && at != "" && b.named[b.rootOf(at)] != "" {
			text += ", and the files at its path are read as they are"
		} else if !b.plan.known {
			text += ", and its path is not read"
		}
		b.warn(finding.SourceElsewhere, o, text, elsewhere.Hint(), "spec", "sourceRef")
		return
	}
	if lost := b.claimUnbuilt(o); o.ReferenceOnly && !lost {
		return
	}
	if _, reported := errors.AsType[*manifest.ObjectError](err); !reported {
		err = manifest.Fault(o, err, "spec")
	}
	b.errs = append(b.errs, err)
}
