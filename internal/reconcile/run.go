package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Connect returns connections to servers. It uses the options about access to servers, the cache and trust, which must be
// equal for all reconcilers.
func Connect(e Edges, o Options) *Connections {
	if o.Offline {
		e.Dial = fetch.RefuseDial
	}
	client := fetch.NewClient(fetch.Config{
		Dial: e.Dial, Getenv: e.Getenv, UserAgent: e.UserAgent, Now: e.Now, Retries: o.Retries, PrivateRedirects: o.PrivateRedirects,
	})
	registries := oci.NewClient(client)
	reading := sync.OnceValue(registries.Reading)
	c := &Connections{
		client:     client,
		registries: registries,
		now:        e.Now,
		getenv:     e.Getenv,
		reading:    reading,
		cache:      o.Cache,
		trust:      sync.OnceValue(newTrust(o, reading)),
	}
	c.blobs = blob.NewPool(0, o.Cache, c.newFile)
	return c
}

// Registry opens the registry namespace of an oci:// URL that the user named, for writing with the user's own login on any host.
// With plain it uses HTTP.
func (c *Connections) Registry(url string, plain bool, o Options) (*oci.Namespace, error) {
	own := secretOptions(c.client, o).Own
	own.Reach = auth.ReachAnywhere
	return c.registries.Namespace(url, oci.Options{Logins: auth.NewAmbient(own), Insecure: plain, Write: true})
}

// Close ends the connections and removes the downloaded files.
func (c *Connections) Close() error {
	c.registries.CloseIdleConnections()
	return errors.Join(c.blobs.Close(), c.files.close(), c.downloads.Close())
}

// Reconciler returns a reconciler for objects of these kinds. The caller must close it before the connections.
func (c *Connections) Reconciler(kinds Table, inv *inventory.Inventory, st *store.Store, o Options) *Reconciler {
	return &Reconciler{
		Connections: c,
		kinds:       kinds,
		inventory:   inv,
		secrets:     credential.NewReader(inv.Set(), secretOptions(c.client, o)),
		store:       st,
		o:           o,
		limits:      o.Chart,
	}
}

func secretOptions(c *fetch.Client, o Options) credential.Options {
	e := c.Config
	return credential.Options{
		Missing: o.MissingSecrets,
		Ambient: o.Ambient,
		Own:     auth.AmbientOptions{Getenv: e.Getenv, RegistryConfig: o.RegistryConfig, Reach: o.Reach},
		Machine: auth.CloudOptions{
			Dial: e.Dial, Getenv: e.Getenv, Now: e.Now, Reach: o.Reach, Acquire: c.Acquire, Leave: fetch.LeaveHost, Offline: o.Offline,
		},
		RepositoryConfig: o.RepositoryConfig,
		SkipTLSVerify:    o.SkipTLSVerify,
	}
}

// Run reconciles the objects and returns their results in the same order. The error is
// returned if the results of objects without artifacts could not be recorded.
func (r *Reconciler) Run(ctx context.Context, objects []*admission.Admitted, progress Progress) ([]*Result, error) {
	r.progress, r.looked, r.generates = progress, lookedAt(objects), generates(objects)
	results := make([]*Result, len(objects))
	order := r.kinds.sourcesFirst(objects)
	work.Ordered(len(order), r.o.Concurrency, func(i int) {
		results[order[i]] = r.finished(ctx, objects[order[i]])
	})
	return results, r.save(ctx)
}

// saveTimeout is the limit for waiting until other processes have saved, which
// takes them milliseconds.
const saveTimeout = 10 * time.Second

// save writes the records, also those of a run that was interrupted.
func (r *Reconciler) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return r.store.Save(ctx)
}

// sourcesFirst returns the order in which reconciliations begin. An object that waits for another one occupies a slot, so
// sources begin first and there is always an object that does not wait.
func (t Table) sourcesFirst(objects []*admission.Admitted) []int {
	var ranked [3][]int
	for i, adm := range objects {
		rank := 1
		switch k, ok := t.of(adm.Object); {
		case ok && k.source:
			rank = 0
		case ok && k.noArtifact:
			rank = 2
		}
		ranked[rank] = append(ranked[rank], i)
	}
	return slices.Concat(ranked[:]...)
}

// Close closes the files that the run kept open and removes its temporary files.
func (r *Reconciler) Close() error { return errors.Join(r.closers.close(), r.temp.Close()) }

// CarryPackages passes the charts that were packaged from Git repositories and buckets to the carrier, in the order of the results.
func CarryPackages(ctx context.Context, to Carrier, st *store.Store, results []*Result) error {
	for _, r := range results {
		if r.Failure != nil || r.Pin == nil || r.Artifact() == nil || r.Object.Object.Kind != sourcev1.HelmChartKind {
			continue
		}
		if r.Pin.Source != PinGit && r.Pin.Source != PinBucket {
			continue
		}
		if err := carryPackage(ctx, to, st, r); err != nil {
			return fmt.Errorf("%s: %w", r.Object.Object, err)
		}
	}
	return nil
}

func carryPackage(ctx context.Context, to Carrier, st *store.Store, r *Result) error {
	f, err := st.OpenArtifact(r.Artifact().Path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return to.Archive(ctx, lockedURL(r.Pin.URL), io.NewSectionReader(f, 0, info.Size()), nil, true)
}
