package cmd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/load"
)

// jobIndex is what Kubernetes gives each Pod of an Indexed Job: its number, from 0.
const jobIndex = "JOB_COMPLETION_INDEX"

// maxShards bounds into how many parts a selection is divided.
const maxShards = 100_000

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
	o.Shard, err = parseShard(o.shardText, index)
	return err
}

// parseShard reads I/N, or /N with the index of a Pod.
func parseShard(text, index string) (load.Shard, error) {
	first, second, found := strings.Cut(text, "/")
	form := &exit.UsageError{Err: fmt.Errorf("--shard %q is not of the form I/N", text), Advice: "0/4 is the first of four shards; /4 takes the number from " + jobIndex}
	if !found {
		return load.Shard{}, form
	}
	from := ""
	if first == "" {
		if index == "" {
			return load.Shard{}, &exit.UsageError{
				Err:    fmt.Errorf("--shard %s: %s is not set", text, jobIndex),
				Advice: "Kubernetes sets it in a Job with completionMode: Indexed; elsewhere write I/N, as 0" + text,
			}
		}
		first, from = index, ", of "+jobIndex
	}
	count, err := number(second)
	if err != nil {
		return load.Shard{}, form
	}
	i, err := number(first)
	switch {
	case err != nil && from != "":
		return load.Shard{}, exit.Usagef("%s %q is no number", jobIndex, index)
	case err != nil:
		return load.Shard{}, form
	case count < 1 || count > maxShards:
		return load.Shard{}, exit.Usagef("--shard %s: there have to be 1 to %d shards, not %d", text, maxShards, count)
	case i >= count:
		return load.Shard{}, &exit.UsageError{Err: fmt.Errorf("--shard %s: there is no shard %d%s", text, i, from), Advice: fmt.Sprintf("the shards are 0/%d to %d/%d", count, count-1, count)}
	}
	return load.Shard{Index: i, Count: count}, nil
}

// number reads digits alone.
func number(text string) (int, error) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, errors.New("no number")
	}
	return strconv.Atoi(text)
}
