//go:build bench

// Command bench measures whole processes: helmsrc against curl and helm, fetching the same files from the same servers
// on loopback. It checks only that each run succeeds; the reader of its table decides about the speed.
//
//	go run -tags=bench ./bench           everything, some minutes
//	go run -tags=bench ./bench -smoke    each case once with little data and without helm, some seconds
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
)

type options struct {
	serve      bool
	smoke      bool
	helm       bool
	runs       int
	only       *regexp.Regexp
	binary     string
	helmBinary string
	before     string
	releases   int
	shards     int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == serveCommand {
		exit(serve(ctx, os.Args[2]))
		return
	}
	o := options{}
	only := ""
	flag.BoolVar(&o.smoke, "smoke", false, "each case once, with little data and without helm")
	flag.BoolVar(&o.helm, "helm", true, "build helm, oras and cosign, and measure them too")
	flag.BoolVar(&o.serve, "serve", false, "only serve the data, for measurements by hand, until interrupted")
	flag.IntVar(&o.runs, "n", 10, "runs of each; helm's slow ones have fewer")
	flag.StringVar(&only, "only", "", "only the cases whose names match this regular expression")
	flag.StringVar(&o.binary, "helmsrc", "", "measure this program instead of building one")
	flag.StringVar(&o.helmBinary, "helm-binary", "", "measure this helm instead of building one")
	flag.StringVar(&o.before, "before", "", "measure this older helmsrc beside it")
	flag.IntVar(&o.releases, "releases", 0, "instead, fetch so many generated HelmReleases in shards with the program of -helmsrc")
	flag.IntVar(&o.shards, "shards", 1, "how many shards")
	flag.Parse()
	if o.releases > 0 {
		exit(releases(ctx, o.binary, o.releases, o.shards))
		return
	}
	if o.smoke {
		o.runs, o.helm = 1, false
	}
	var err error
	if o.only, err = regexp.Compile(only); err == nil {
		err = bench(ctx, &o)
	}
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// bench builds, generates, serves and measures in a temporary directory.
func bench(ctx context.Context, o *options) error {
	dir, err := os.MkdirTemp("", "helmsrc-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := startServer(ctx, o, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	if o.serve {
		fmt.Println(s.addr)
		<-ctx.Done()
		return nil
	}
	tools, err := buildTools(ctx, o, dir)
	if err != nil {
		return err
	}
	b := &runner{options: o, tools: tools, server: s, dir: dir}
	printHeader(os.Stdout, o, tools)
	for _, g := range groups(o) {
		if !o.only.MatchString(g.name) {
			continue
		}
		if err := b.measure(ctx, g); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}
