package cmd

import (
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/reconcile"
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

// bill makes the components of bills of materials, with what is in a store. It is nil if none are wanted.
func (o *runOptions) bill(a *app, st *store.Store) *listing.Bill {
	if !o.report.Bills() {
		return nil
	}
	if o.Reconcile.Until != reconcile.Fetch {
		st = nil
	}
	return &listing.Bill{Lister: a.lister, Images: o.named, Store: st}
}
