package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

const (
	shardFile = stateDir + "/shard"
	maxShard  = 64 << 10
)

// A Shard is which part of a selection a run fetched into the directory. It is written when the run is over, and not
// if it was interrupted: a directory without one holds no part, or not all of it.
type Shard struct {
	FormatVersion int `json:"formatVersion"` // set by WriteShard
	Index         int `json:"index"`
	Count         int `json:"count"`
	// Selection is equal for parts of one selection.
	Selection string `json:"selection"`
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// WriteShard records that a part is complete. Several processes may do so at once: the lock is that of the shared records.
func (s *Store) WriteShard(ctx context.Context, shard Shard) error {
	shard.FormatVersion = recordFormat
	data, err := json.Marshal(shard)
	if err != nil {
		return err
	}
	return s.exclusive(ctx, shardFile, func(v *view) error { return s.writeFile(v, shardFile, bytes.NewReader(append(data, '\n'))) })
}

// RemoveShard is for a run that begins: until it is over, the directory holds no complete part.
func (s *Store) RemoveShard() error {
	v, err := s.existing()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return v.removeFile(shardFile)
}

// ReadShard returns which part the directory holds; the error matches fs.ErrNotExist if nothing says so.
func (s *Store) ReadShard() (Shard, error) {
	v, err := s.existing()
	if err != nil {
		return Shard{}, err
	}
	data, err := v.readState(shardFile, maxShard)
	if err != nil {
		return Shard{}, err
	}
	var shard Shard
	err = json.Unmarshal(data, &shard)
	if err != nil || shard.FormatVersion != recordFormat {
		return Shard{}, &RecordError{shardFile, unknownFormat(data, err)}
	}
	if shard.Count < 1 || shard.Index < 0 || shard.Index >= shard.Count {
		return Shard{}, &RecordError{shardFile, fmt.Errorf("there is no shard %s", shard)}
	}
	return shard, nil
}
