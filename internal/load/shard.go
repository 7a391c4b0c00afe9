package load

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// A Shard is a part of a selection; with Count 0 it is the whole selection.
type Shard struct{ Index, Count int }

// has reports whether an object is in the shard. A derived object is in the shard of its origin. The result depends only on the
// identity of the object: other objects do not move it.
func (s Shard) has(obj *manifest.Object) bool {
	if s.Count < 2 {
		return true
	}
	sum := sha256.Sum256([]byte(identityOf(obj)))
	return int(binary.BigEndian.Uint64(sum[:8])%uint64(s.Count)) == s.Index
}

func identityOf(obj *manifest.Object) string {
	for obj.Origin != nil {
		obj = obj.Origin
	}
	return store.NewKey(obj.Kind, obj.Namespace, obj.Name).String()
}

// Selected reports whether an object is selected, in any shard.
func (in *Input) Selected(obj *manifest.Object) bool {
	judged := in.validating && obj.Group() == manifest.ImageGroup // images take no part in a run
	return (in.table.Supports(obj) || judged) && (in.Asked(obj) || in.Required[inventory.KeyOf(obj)])
}

// BeginShard removes the shard record of an earlier run from an artifacts directory.
func (in *Input) BeginShard(st *store.Store) error {
	if in.Shard.Count == 0 {
		return nil
	}
	return st.RemoveShard()
}

// EndShard records that a run is complete.
func (in *Input) EndShard(ctx context.Context, st *store.Store, results []*reconcile.Result) error {
	interrupted := func(r *reconcile.Result) bool { return r.State == reconcile.Interrupted }
	if in.Shard.Count == 0 || slices.ContainsFunc(results, interrupted) {
		return nil
	}
	return st.WriteShard(ctx, store.Shard{Index: in.Shard.Index, Count: in.Shard.Count, Selection: in.selectionDigest()})
}

// selectionDigest returns a digest of the selected objects.
func (in *Input) selectionDigest() string {
	var names []string
	for _, obj := range in.Inventory.Objects() {
		if in.Selected(obj) {
			key := StoredKey(obj)
			names = append(names, key.String())
		}
	}
	slices.Sort(names)
	return godigest.FromString(strings.Join(names, "\n")).String()
}

// ReportShard prints the shard's part of the selection.
func (l *Reader) ReportShard(in *Input) {
	if in.Shard.Count == 0 {
		return
	}
	all, part := 0, 0
	for _, obj := range in.Inventory.Objects() {
		if in.Selected(obj) {
			all++
			if in.Wanted(obj) {
				part++
			}
		}
	}
	l.Console.Info(console.Subject{}, fmt.Sprintf("shard %d/%d: %d of %d objects, and the sources that they need", in.Shard.Index, in.Shard.Count, part, all))
}
