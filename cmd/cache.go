package cmd

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/exit"
)

// cacheOptions are the flags of the cache of downloads.
type cacheOptions struct {
	dir  string
	none bool
	max  config.Bytes
}

func (o *cacheOptions) add(fs *pflag.FlagSet) {
	o.addDir(fs)
	fs.BoolVar(&o.none, "no-cache", false, "neither read nor write the cache")
}

func (o *cacheOptions) addDir(fs *pflag.FlagSet) {
	o.max = cache.DefaultMaxSize
	fs.StringVar(&o.dir, "cache-dir", "", "`directory` of the cache (default: helmsrc in the user's cache directory)")
	fs.Var(&o.max, "cache-max-size", "maximum size of the cache after a run, in `bytes` or as a quantity")
}

// directory returns the directory of the cache, or "" if neither a flag nor the environment names it.
func (o *cacheOptions) directory(getenv func(string) string) (string, error) {
	if o.dir == "" {
		return cacheDir(runtime.GOOS, getenv), nil
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return "", &exit.UsageError{Err: fmt.Errorf("--cache-dir: %w", err)}
	}
	return dir, nil
}

// options returns the options of the cache for a run, which ignores cached answers if refresh is set.
func (o *cacheOptions) options(a *app, refresh bool) cache.Options {
	return cache.Options{
		MaxSize: int64(o.max), Refresh: refresh, Now: a.now,
		Warn: func(err error) { a.console.Warn(err.Error()) },
	}
}

// quoted returns a word as a shell reads it, in quotes if it has special characters.
func quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./=:,@+%", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// cacheDir returns the directory of the cache for a user of this operating system, or "" if the environment does not define
// one.
func cacheDir(system string, getenv func(string) string) string {
	base := ""
	switch home := getenv("HOME"); {
	case system == "windows":
		base = getenv("LocalAppData")
	case system == "darwin" && home != "":
		base = filepath.Join(home, "Library", "Caches")
	case system == "darwin":
	case filepath.IsAbs(getenv("XDG_CACHE_HOME")):
		base = getenv("XDG_CACHE_HOME")
	case home != "":
		base = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, "helmsrc")
}
