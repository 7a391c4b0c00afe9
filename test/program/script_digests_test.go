package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
)

// referrersTag matches the tag of a list of referrers, in a registry without an API for them. Each client that adds to the
// list writes it again, in its own order.
var referrersTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}$`)

// cmdDigests prints the digests in a repository of a registry, sorted: the tagged manifests, their referrers, and the content
// of both. It reads everything and compares it with its digest.
func cmdDigests(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 2, "digests server repository")
	s := theScene(ts)
	c, ok := s.world.Configs[args[0]]
	if !ok {
		ts.Fatalf("no server %s", args[0])
	}
	repo, err := remote.NewRepository(c.Addr + "/" + args[1])
	ts.Check(err)
	transport := &http.Transport{DialContext: s.world.Network.Dial}
	defer transport.CloseIdleConnections()
	repo.PlainHTTP, repo.Client = true, &http.Client{Transport: transport}
	var lines []string
	err = repo.Tags(context.Background(), "", func(tags []string) error {
		for _, tag := range tags {
			if referrersTag.MatchString(tag) {
				continue
			}
			of, err := digestsOf(repo, tag)
			if err != nil {
				return err
			}
			lines = append(lines, of...)
		}
		return nil
	})
	ts.Check(err)
	if len(lines) == 0 {
		ts.Check(errors.New("there is no tag"))
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(ts.Stdout(), line)
	}
}

func digestsOf(repo *remote.Repository, tag string) ([]string, error) {
	root, err := repo.Resolve(context.Background(), tag)
	if err != nil {
		return nil, err
	}
	lines := []string{tag + " " + root.Digest.String()}
	var mu sync.Mutex
	o := oras.DefaultExtendedCopyGraphOptions
	o.PostCopy = func(_ context.Context, d ocispec.Descriptor) error {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, "has "+d.Digest.String())
		return nil
	}
	if err := oras.ExtendedCopyGraph(context.Background(), repo, memory.New(), root, o); err != nil {
		return nil, err
	}
	referrers, err := repo.Predecessors(context.Background(), root)
	for _, d := range referrers {
		lines = append(lines, "referrer "+d.Digest.String())
	}
	return lines, err
}
