package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	godigest "github.com/opencontainers/go-digest"
	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/store"
)

// jobIndex is what Kubernetes gives each Pod of an Indexed Job: its number, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

// maxShards bounds into how many parts a selection is divided.
const maxShards = 100_000

// shard is a part of a selection; count is 0 for all of it.
type shard struct{ index, count int }

func (o *inputOptions) addShard(fs *pflag.FlagSet) {
	fs.StringVar(&o.shardText, "shard", "", "only shard `I/N` of what is selected, from 0/N on; /N takes I from "+jobIndex)
}

// checkShard reads --shard.
func (o *inputOptions) checkShard(a *app) error {
	index := a.env.Getenv(jobIndex)
	if o.shardText == "" {
		if index != "" && o.shardText == "" {
			a.console.Warn(fmt.Sprintf("%s is %q, and --shard does not say of how many: all of the selection is taken; --shard /N takes the shard of this Pod", jobIndex, index))
		}
		return nil
	}
	var err error
	o.shard, err = parseShard(o.shardText, index)
	return err
}

// parseShard reads I/N, or /N with the index of a Pod.
func parseShard(text, index string) (shard, error) {
	first, second, found := strings.Cut(text, "/")
	form := &usageError{err: fmt.Errorf("--shard %q is not of the form I/N", text), hint: "0/4 is the first of four shards; /4 takes the number from " + jobIndex}
	if !found {
		return shard{}, form
	}
	from := ""
	if first == "" {
		if index == "" {
			return shard{}, &usageError{
				err:  fmt.Errorf("--shard %s: %s is not set", text, jobIndex),
				hint: "Kubernetes sets it in a Job with completionMode: Indexed; elsewhere write I/N, as 0" + text,
			}
		}
		first, from = index, ", of "+jobIndex
	}
	count, err := number(second)
	if err != nil {
		return shard{}, form
	}
	i, err := number(first)
	switch {
	case err != nil && from != "":
		return shard{}, usagef("%s %q is no number", jobIndex, index)
	case err != nil:
		return shard{}, form
	case count < 1 || count > maxShards:
		return shard{}, usagef("--shard %s: there have to be 1 to %d shards, not %d", text, maxShards, count)
	case i >= count:
		return shard{}, &usageError{err: fmt.Errorf("--shard %s: there is no shard %d%s", text, i, from), hint: fmt.Sprintf("the shards are 0/%d to %d/%d", count, count-1, count)}
	}
	return shard{i, count}, nil
}

// number reads digits alone.
func number(text string) (int, error) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, errors.New("no number")
	}
	return strconv.Atoi(text)
}

// has reports whether an object is in the part. What follows from another object is where that is. The answer depends on the
// identity of the object alone: whatever else there is, it stays where it is.
func (s shard) has(obj *manifest.Object) bool {
	if s.count < 2 {
		return true
	}
	sum := sha256.Sum256([]byte(identityOf(obj)))
	return int(binary.BigEndian.Uint64(sum[:8])%uint64(s.count)) == s.index
}

func identityOf(obj *manifest.Object) string {
	for obj.Origin != nil {
		obj = obj.Origin
	}
	return store.NewKey(obj.Kind, obj.Namespace, obj.Name).String()
}

// selected reports whether an object is selected, in whichever part.
func (in *input) selected(obj *manifest.Object) bool {
	judged := in.validating && obj.Group() == manifest.ImageGroup // those take no part in a run
	return (in.table.Supports(obj) || judged) && (in.asked(obj) || in.brought[keyOfObject(obj)])
}

// reportShard says how much of the selection the part is.
func (a *app) reportShard(in *input) {
	if in.shard.count == 0 {
		return
	}
	all, part := 0, 0
	for _, obj := range in.inventory.Objects() {
		if in.selected(obj) {
			all++
			if in.wanted(obj) {
				part++
			}
		}
	}
	a.console.Info(console.Subject{}, fmt.Sprintf("shard %d/%d: %d of %d objects, and the sources that they need", in.shard.index, in.shard.count, part, all))
}

// beginShard takes back what the directory says of an earlier run, endShard says that this one is complete.
func (in *input) beginShard(st *store.Store) error {
	if in.shard.count == 0 {
		return nil
	}
	return st.RemoveShard()
}

func (in *input) endShard(ctx context.Context, st *store.Store, results []*reconcile.Result) error {
	interrupted := func(r *reconcile.Result) bool { return r.State == reconcile.Interrupted }
	if in.shard.count == 0 || slices.ContainsFunc(results, interrupted) {
		return nil
	}
	return st.WriteShard(ctx, store.Shard{Index: in.shard.index, Count: in.shard.count, Selection: in.selectionDigest()})
}

// selectionDigest is equal for inputs of which the same objects are selected.
func (in *input) selectionDigest() string {
	var names []string
	for _, obj := range in.inventory.Objects() {
		if in.selected(obj) {
			key := storedKey(obj)
			names = append(names, key.String())
		}
	}
	slices.Sort(names)
	return godigest.FromString(strings.Join(names, "\n")).String()
}
