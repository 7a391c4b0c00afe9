package load

import (
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// StoredKey is the key by which an object has its files: a name that came from a Secret is another one there.
func StoredKey(obj *manifest.Object) store.Key {
	namespace, name := obj.StoredAs()
	return store.NewKey(obj.Kind, namespace, name)
}

// RenameStored has the files of such objects called by those keys.
func RenameStored(inv *inventory.Inventory, st *store.Store) {
	for _, obj := range inv.Objects() {
		if key, stored := store.NewKey(obj.Kind, obj.Namespace, obj.Name), StoredKey(obj); key != stored {
			st.Rename(key, stored)
		}
	}
}

// A RecordID identifies a record of an artifacts directory.
type RecordID struct{ Group, Kind, Namespace, Name string }

// RecordOf returns the identity of the record of an object of the input.
func RecordOf(obj *manifest.Object) RecordID {
	namespace, name := obj.StoredAs()
	return RecordID{obj.Group(), obj.Kind, namespace, name}
}

// Recorded returns the identity of a record by the object in it.
func Recorded(obj *manifest.Object) RecordID {
	return RecordID{obj.Group(), obj.Kind, obj.Namespace, obj.Name}
}
