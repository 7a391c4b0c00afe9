package store

import (
	"sync"
	"testing"
)

// Several processes that fetch their parts into one directory at the same time end in the record of one of them.
func TestWriteShardAtOnce(t *testing.T) {
	dir := t.TempDir()
	const parts, rounds = 3, 50
	var all sync.WaitGroup
	for i := range parts {
		s, err := Open(dir, testOptions())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all.Go(func() {
			for range rounds {
				if err := s.RemoveShard(); err != nil {
					t.Error(err)
				}
				if err := s.WriteShard(t.Context(), Shard{Index: i, Count: parts, Selection: "all"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	s, err := Open(dir, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if shard, err := s.ReadShard(); err != nil || shard.Count != parts {
		t.Errorf("got %v, %v", shard, err)
	}
}
