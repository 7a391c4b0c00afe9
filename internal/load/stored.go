package load

import (
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/store"
)

// StoredKey is the key by which an object has its files: a name that came from a Secret is another one there.
func StoredKey(obj *manifest.Object) store.Key {
	namespace, name := obj.StoredAs()
	return store.NewKey(obj.Kind, namespace, name)
}

// RenameStored has the files of such objects called by those keys.
func (in *Input) RenameStored(st *store.Store) {
	for _, obj := range in.Inventory.Objects() {
		if key, stored := store.NewKey(obj.Kind, obj.Namespace, obj.Name), StoredKey(obj); key != stored {
			st.Rename(key, stored)
		}
	}
}

// IsRecordOf reports whether what is recorded is that of an object of the input.
func IsRecordOf(recorded, obj *manifest.Object) bool {
	namespace, name := obj.StoredAs()
	return recorded.Group() == obj.Group() && recorded.Kind == obj.Kind && recorded.Namespace == namespace && recorded.Name == name
}
