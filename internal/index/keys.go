package index

import (
	"bytes"
	"encoding/binary"
)

// fewKeys is how many keys of a mapping are compared one by one.
const fewKeys = 24

// keyStack holds the keys of all mappings that are open, the innermost one's last.
type keyStack struct {
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
	refs, text int             // where it begins
	many       map[string]bool // the keys, once there are more than a few
}

func (k *keyStack) open() keySet { return keySet{refs: len(k.refs), text: len(k.text)} }

// close forgets a set and those that were opened after it.
func (k *keyStack) close(s *keySet) {
	k.refs, k.text = k.refs[:s.refs], k.text[:s.text]
	s.many = nil
}

// add adds a key to the innermost set. It says whether the key is new.
func (k *keyStack) add(s *keySet, key []byte) bool {
	head := keyHead(key)
	if s.many == nil {
		for i, ref := range k.refs[s.refs:] {
			if ref.head == head && bytes.Equal(k.textOf(s.refs+i), key) {
				return false
			}
		}
	} else if s.many[string(key)] {
		return false
	}
	k.refs = append(k.refs, keyRef{head, len(k.text)})
	k.text = append(k.text, key...)
	switch n := k.count(s); {
	case s.many != nil:
		s.many[string(key)] = true
	case n > fewKeys:
		s.many = make(map[string]bool, 2*n)
		for i := range n {
			s.many[string(k.textOf(s.refs+i))] = true
		}
	}
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
