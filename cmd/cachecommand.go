package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/records"
)

func newCacheCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "cache",
		GroupID: groupArtifacts,
		Short:   "Manage the cache of downloads",
		Long: `Inspect and clean the cache of indexes, archives, layers, lists of tags and Git objects
that runs have downloaded. All runs of a user share it, and everything is checked when it
is read. A private chart is served only to a run with credentials that its source has
accepted before.`,
		Example: `  helmsrc cache path
  helmsrc cache ls
  helmsrc cache prune --cache-max-size 500Mi`,
		Args: noSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newCachePathCommand(a), newCacheListCommand(a), newCachePruneCommand(a), newCacheVerifyCommand(a))
	return c
}

func newCachePathCommand(a *app) *cobra.Command {
	var o cacheOptions
	c := &cobra.Command{
		Use:     "path",
		Short:   "Print the directory of the cache",
		Example: "  helmsrc cache path",
		Args:    noArguments,
	}
	o.addDir(c.Flags())
	c.RunE = a.runner(func(context.Context, []string) (int, error) {
		dir, err := o.existing(a)
		if err != nil {
			return exit.Usage, err
		}
		_, err = fmt.Fprintln(a.env.Stdout, dir)
		return exit.OK, err
	})
	return c
}

// existing returns the directory of the cache, which need not exist. It is an error if its place is unknown.
func (o *cacheOptions) existing(a *app) (string, error) {
	dir, err := o.directory(a.env.Getenv)
	if err == nil && dir == "" {
		err = &exit.UsageError{Err: errors.New("the directory of the cache is not known"), Advice: "set HOME, or name it with --cache-dir"}
	}
	return dir, err
}

// openExisting opens the cache. It returns nil if the directory has no cache yet.
func (o *cacheOptions) openExisting(a *app) (*cache.Cache, error) {
	dir, err := o.existing(a)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(cache.Path(dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return cache.Open(dir, o.options(a, false))
}

// cacheEntry is a line of cache ls.
type cacheEntry struct {
	Kind    string        `json:"kind"`
	Source  string        `json:"source"`
	Name    string        `json:"name,omitempty"`
	Digest  digest.Digest `json:"digest,omitempty"`
	Size    int64         `json:"size"`
	Used    time.Time     `json:"used"`
	Private bool          `json:"private"`
}

func newCacheListCommand(a *app) *cobra.Command {
	var o cacheOptions
	format := otherFormat("table", "wide", "json", "jsonl")
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the entries of the cache",
		Long: `List the entries of the cache with their kind, source, size and last use. A file that
came from several sources is listed once for each.`,
		Example: "  helmsrc cache ls\n  helmsrc cache ls -o json",
		Args:    noArguments,
	}
	o.addDir(c.Flags())
	format.add(a, c)
	format.addJSON(c, "jsonl")
	c.RunE = a.runner(func(context.Context, []string) (int, error) {
		entries, err := o.entries(a)
		if err != nil {
			return exit.Failed, err
		}
		return exit.OK, cacheColumns().Print(a.env.Stdout, format.format, a.paper, entries)
	})
	return c
}

// entries returns the cached answers, sorted and without duplicates, each with the size of its content.
func (o *cacheOptions) entries(a *app) ([]cacheEntry, error) {
	c, err := o.openExisting(a)
	if c == nil || err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	all, err := c.Entries()
	if err != nil {
		return nil, err
	}
	bytes := map[digest.Digest]cache.Entry{}
	for _, e := range all {
		if !e.IsAnswer() {
			bytes[e.Digest] = e
		}
	}
	var list []cacheEntry
	for _, e := range all {
		if !e.IsAnswer() || e.Kind == "" {
			continue
		}
		content, there := bytes[e.Digest]
		if e.Digest != "" && !there {
			continue // the content was removed to make room
		}
		used := e.Used
		if content.Used.After(used) {
			used = content.Used
		}
		size := e.Size
		if e.Kind == cache.KindBytes {
			size = content.Size
		}
		list = append(list, cacheEntry{e.Kind, e.Source, e.Name, e.Digest, size, used.UTC(), e.Private})
	}
	slices.SortFunc(list, func(a, b cacheEntry) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest), a.Used.Compare(b.Used))
	})
	// The same content is listed once for each source, also if several objects refer to it.
	return slices.CompactFunc(list, func(a, b cacheEntry) bool {
		return a.Source == b.Source && a.Kind == b.Kind && a.Name == b.Name && a.Digest == b.Digest && a.Private == b.Private
	}), nil
}

func cacheColumns() *records.Columns[cacheEntry] {
	return &records.Columns[cacheEntry]{
		Header: []string{"KIND", "SOURCE", "NAME", "SIZE", "USED"},
		Wide:   []string{"DIGEST"},
		Row: func(e cacheEntry) []string {
			return []string{e.Kind, e.Source, cmp.Or(e.Name, "-"), shownSize(e.Size), e.Used.Format(time.RFC3339), cmp.Or(string(e.Digest), "-")}
		},
	}
}

// shownSize returns a number of bytes with a binary unit.
func shownSize(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return resource.NewQuantity(n, resource.BinarySI).String()
}

func newCachePruneCommand(a *app) *cobra.Command {
	var o cacheOptions
	var all, private bool
	c := &cobra.Command{
		Use:   "prune",
		Short: "Trim the cache",
		Long: `Remove the least recently used entries until the cache is no larger than
--cache-max-size, and remove files that no entry refers to and files that killed runs left
behind. Files that helmsrc did not write are kept.`,
		Example: "  helmsrc cache prune --cache-max-size 500Mi\n  helmsrc cache prune --private\n  helmsrc cache prune --all",
		Args:    noArguments,
	}
	o.addDir(c.Flags())
	c.Flags().BoolVar(&all, "all", false, "remove everything")
	c.Flags().BoolVar(&private, "private", false, "also remove entries that were, or may have been, fetched with a login")
	c.RunE = a.runner(func(context.Context, []string) (int, error) {
		opened, err := o.openExisting(a)
		if err != nil {
			return exit.Failed, err
		}
		var removed cache.Removed
		if opened != nil {
			defer func() { _ = opened.Close() }()
			removed, err = opened.Prune(func(e *cache.Entry) bool { return all || private && e.Private })
		}
		a.console.Info(console.Subject{}, fmt.Sprintf("%d files removed, %s", removed.Files, shownSize(removed.Bytes)))
		return exit.OK, err
	})
	return c
}

func newCacheVerifyCommand(a *app) *cobra.Command {
	var o cacheOptions
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the cache, and remove damaged files",
		Long: `Compare every file of the cache with its digest, and remove damaged files. A run does
the same with the files that it reads.

Exit codes: 0 nothing was damaged, 1 the cache cannot be read, 3 something was damaged.`,
		Example: "  helmsrc cache verify",
		Args:    noArguments,
	}
	o.addDir(c.Flags())
	c.RunE = a.runner(func(context.Context, []string) (int, error) {
		opened, err := o.openExisting(a)
		if err != nil {
			return exit.Failed, err
		}
		var read int
		var damaged []cache.Entry
		if opened != nil {
			defer func() { _ = opened.Close() }()
			read, damaged, err = opened.Verify()
		}
		for _, e := range damaged {
			a.console.Warn("damaged, and removed: " + cmp.Or(e.Digest.String(), "an entry"))
		}
		a.console.Info(console.Subject{}, fmt.Sprintf("%d files read, %d damaged", read, len(damaged)))
		if len(damaged) > 0 && err == nil {
			return exit.Integrity, nil
		}
		return exit.OK, err
	})
	return c
}
