package index

import (
	"hash/maphash"
	"slices"
)

// fewKeys is the number of keys of a mapping that are compared one by one.
const fewKeys = 24

// A keyStack holds the hashes of the keys of all open mappings, the innermost mapping's last. Hashes with a random seed
// replace the keys: in a mapping with a million keys, two hashes are equal by chance once in 30 million indexes.
type keyStack struct {
	seed   maphash.Seed
	hashes []uint64
}

// A keySet is one mapping's part of a keyStack.
type keySet struct {
	from, count int
	more        map[uint64]bool // the keys after the first few
}

func newKeyStack() *keyStack { return &keyStack{seed: maphash.MakeSeed()} }

func (k *keyStack) open() keySet { return keySet{from: len(k.hashes)} }

// close removes a set and all sets that were opened after it.
func (k *keyStack) close(s *keySet) { k.hashes = k.hashes[:s.from] }

// add adds a key to the innermost set. It reports whether the key is new.
func (k *keyStack) add(s *keySet, key []byte) bool {
	hash := maphash.Bytes(k.seed, key)
	if slices.Contains(k.hashes[s.from:], hash) || s.more[hash] {
		return false
	}
	if s.count++; s.count <= fewKeys {
		k.hashes = append(k.hashes, hash)
		return true
	}
	if s.more == nil {
		s.more = map[uint64]bool{}
	}
	s.more[hash] = true
	return true
}
