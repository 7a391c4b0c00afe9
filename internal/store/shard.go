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

// A Shard describes the part of a selection that a run fetched into the directory. It is written at the end of a run
// that was not interrupted: a directory without it has no complete part.
type Shard struct {
	FormatVersion int `json:"formatVersion"` // set by WriteShard
	Index         int `json:"index"`
	Count         int `json:"count"`
	// Selection is equal for parts of one selection.
	Selection string `json:"selection"`
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// WriteShard records that a part is complete. It is safe for several processes: it takes the lock of the shared records.
func (s *Store) WriteShard(ctx context.Context, shard Shard) error {
	shard.FormatVersion = recordFormat
	data, err := json.Marshal(shard)
	if err != nil {
		return err
	}
	return s.exclusive(ctx, shardFile, func(v *view) error { return s.writeFile(v, shardFile, bytes.NewReader(append(data, '\n'))) })
}

// RemoveShard removes the record at the start of a run: until the end of the run, the directory has no complete part.
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

// ReadShard returns the part in the directory. The error matches fs.ErrNotExist if no part is recorded.
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
