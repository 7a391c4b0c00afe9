package cmd

import (
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/foresee"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/report"
	"github.com/helmsrc/helmsrc/internal/store"
)

// addImages has a command list images in bills of materials.
func (o *runOptions) addImages(fs *pflag.FlagSet, from string) {
	fs.BoolVar(&o.named, "images", false, "also list in bills of materials the container images that "+from)
}

// checkImages refuses images that nothing would list.
func (o *runOptions) checkImages() error {
	if o.named && !o.report.Bills() {
		return exit.Usagef("--images: --report names no bill of materials: cyclonedx, intoto or spdx")
	}
	return nil
}

// describe gives objects their components, if a bill of materials is wanted.
func (o *runOptions) describe(a *app, st *store.Store, results []*reconcile.Result, objects []report.Object) {
	if !o.report.Bills() {
		return
	}
	if o.Reconcile.Until != reconcile.Fetch {
		st = nil
	}
	o.bill(a, st).Describe(results, objects)
}

func (o *runOptions) bill(a *app, st *store.Store) *listing.Bill {
	return &listing.Bill{Lister: a.lister, Images: o.named, Store: st}
}

// component is the chart of a release that was rendered, if a bill of materials is wanted.
func (o *runOptions) component(a *app, r *foresee.Release, manifests []byte) (*report.Component, error) {
	if !o.report.Bills() {
		return nil, nil
	}
	return o.bill(a, nil).Rendered(r, manifests)
}
