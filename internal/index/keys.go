package index

import (
	"hash/maphash"
	"slices"
)

// fewKeys is how many keys of a mapping are compared one by one.
const fewKeys = 24

// keyStack holds the hashes of the keys of all mappings that are open, the innermost one's last. Hashes with a random seed
// stand for the keys: in a mapping with a million keys, two are alike by chance once in 30 million indexes.
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

// close forgets a set and those that were opened after it.
func (k *keyStack) close(s *keySet) { k.hashes = k.hashes[:s.from] }

// add adds a key to the innermost set. It says whether the key is new.
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
