package index

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// fewKeys is how many keys of a mapping are compared one by one.
const fewKeys = 24

// keyStack holds the keys of all mappings that are open, the innermost one's last.
type keyStack struct {
	seed maphash.Seed
	text []byte
	refs []keyRef
}

// A keyRef is one key: a number that is most likely its own, and where its text is.
type keyRef struct {
	head uint64
	at   int
}

// A keySet is one mapping's part of a keyStack.
type keySet struct {
	refs, text int     // where it begins
	table      []int32 // hash table of indexes into refs, from 1, once there are many
}

func newKeyStack() *keyStack { return &keyStack{seed: maphash.MakeSeed()} }

func (k *keyStack) open() keySet { return keySet{refs: len(k.refs), text: len(k.text)} }

// close forgets a set and those that were opened after it.
func (k *keyStack) close(s *keySet) {
	k.refs, k.text = k.refs[:s.refs], k.text[:s.text]
	s.table = nil
}

// add adds a key to the innermost set. It says whether the key is new.
func (k *keyStack) add(s *keySet, key []byte) bool {
	head := keyHead(key)
	if s.table == nil {
		for i, ref := range k.refs[s.refs:] {
			if ref.head == head && k.same(s.refs+i, key) {
				return false
			}
		}
	} else if k.find(s, head, key) {
		return false
	}
	k.refs = append(k.refs, keyRef{head, len(k.text)})
	k.text = append(k.text, key...)
	k.index(s)
	return true
}

func (k *keyStack) count(s *keySet) int { return len(k.refs) - s.refs }

// keyHead differs for most keys that differ.
func keyHead(key []byte) uint64 {
	n := len(key)
	switch {
	case n >= 8:
		return binary.LittleEndian.Uint64(key)*uint64(n) ^ binary.LittleEndian.Uint64(key[n-8:])
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(key))<<32 | uint64(binary.LittleEndian.Uint32(key[n-4:]))
	case n > 0:
		return uint64(key[0])<<24 | uint64(key[n/2])<<16 | uint64(key[n-1])<<8 | uint64(n)
	}
	return 0
}

func (k *keyStack) textOf(i int) []byte {
	end := len(k.text)
	if i+1 < len(k.refs) {
		end = k.refs[i+1].at
	}
	return k.text[k.refs[i].at:end]
}

func (k *keyStack) same(i int, key []byte) bool { return bytes.Equal(k.textOf(i), key) }

// index adds the last key to the hash table, which it makes or enlarges if need be.
func (k *keyStack) index(s *keySet) {
	n := k.count(s)
	switch {
	case n <= fewKeys:
		return
	case 2*n > len(s.table):
		s.table = make([]int32, 4*max(n, len(s.table)/2))
		for i := s.refs; i < len(k.refs); i++ {
			k.insert(s, i)
		}
	default:
		k.insert(s, len(k.refs)-1)
	}
}

func (k *keyStack) insert(s *keySet, i int) {
	slot := k.slot(s, k.textOf(i))
	for s.table[slot] != 0 {
		slot = (slot + 1) % len(s.table)
	}
	s.table[slot] = int32(i-s.refs) + 1
}

func (k *keyStack) find(s *keySet, head uint64, key []byte) bool {
	for slot := k.slot(s, key); s.table[slot] != 0; slot = (slot + 1) % len(s.table) {
		i := s.refs + int(s.table[slot]) - 1
		if k.refs[i].head == head && k.same(i, key) {
			return true
		}
	}
	return false
}

func (k *keyStack) slot(s *keySet, key []byte) int {
	return int(maphash.Bytes(k.seed, key) % uint64(len(s.table)))
}
