package load

import (
	"cmp"
	"fmt"
	"slices"

	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/validate"
)

// WithoutHome leaves out the source that a cluster reads this repository from, where the Secret with its login is in the
// cluster alone, as flux bootstrap leaves it: nothing of it is missing here. A run that is about this source, or has
// anything that is made of it, keeps it.
func (l *Reader) WithoutHome(in *Input, targets []*admission.Admitted, o reconcile.Options) []*admission.Admitted {
	if o.MissingSecrets != reconcile.MissingSecretsFail {
		return targets
	}
	needed := map[store.Key]bool{}
	for _, adm := range targets {
		in.need(needed, adm)
	}
	var kept, home []*admission.Admitted
	for _, adm := range targets {
		key := inventory.KeyOf(adm.Object)
		if !validate.Home(adm, in.Set) || needed[key] || o.Directories[key] != "" || in.named(adm.Object) {
			kept = append(kept, adm)
			continue
		}
		home = append(home, adm)
	}
	if len(kept) == 0 {
		return targets
	}
	for _, adm := range home {
		line := fmt.Sprintf("%s: left out: the Secret with its login is in the cluster alone, and nothing here is made of it", adm.Object)
		if in.once(line) {
			l.Console.Info(console.Subject{}, line)
		}
	}
	return kept
}

// need notes what an object is made of.
func (in *Input) need(needed map[store.Key]bool, adm *admission.Admitted) {
	for _, source := range in.SourcesOf(adm, func(*inventory.RejectedError) {}) {
		needed[inventory.KeyOf(source.Object)] = true
	}
	if generator, ok := adm.Typed.(*swv1.ArtifactGenerator); ok {
		for _, s := range generator.Spec.Sources {
			needed[store.NewKey(s.Kind, cmp.Or(s.Namespace, adm.Object.Namespace), s.Name)] = true
		}
	}
}

func (in *Input) named(obj *manifest.Object) bool {
	return slices.ContainsFunc(in.Selectors, func(s Selector) bool { return s.Matches(obj) })
}
