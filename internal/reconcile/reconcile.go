// Package reconcile takes each object from spec to status, once. It is the only
// place that knows the order of the steps, and the one that attaches reasons to
// errors. It prints nothing and knows no flags.
package reconcile

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/auth"
	"github.com/helmsrc/helmsrc/internal/blob"
	"github.com/helmsrc/helmsrc/internal/cache"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/verify"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Options are the choices of one run. The caller of New makes them; they do not change.
type Options struct {
	// Until is how far objects are taken.
	Until Line
	// List stops before versions are chosen, at what is published. It goes with Choose; sources that publish no
	// versions are not asked.
	List bool
	// Level is how far exact versions may be moved, "" for not at all. It goes with List.
	Level resolve.Level
	// Verify checks signatures although nothing is fetched, and fails an object whose
	// stored artifact was altered. It goes with Choose.
	Verify bool
	// Refresh rebuilds everything instead of reusing artifacts.
	Refresh bool
	// Concurrency is the number of objects in flight.
	Concurrency int
	// Retries is the number of further attempts after a transient failure.
	Retries int
	// IndexMax bounds an index, in bytes; Chart bounds the charts.
	IndexMax int64
	Chart    ChartLimits
	// IndexDigest says what to do with an archive that is not the index's: enforce,
	// warn or ignore.
	IndexDigest string
	// AllowNameMismatch accepts an archive whose name or version is another than
	// the one that was asked for.
	AllowNameMismatch bool
	// Locked is what objects were resolved to before, nil to choose anew.
	Locked *Locked
	// Directories replace source objects, by key.
	Directories map[store.Key]string
	// SkipTLSVerify takes any server of a source for the right one. No login of the machine is used then.
	SkipTLSVerify bool
	// Decisions asks for what is decided about each object: see [Progress].
	Decisions bool
	// Finished are the results of an earlier part of the run, whose reconciler is not closed yet: what has not changed since
	// is not reconciled again.
	Finished map[store.Key]*Result
	// Archives are the only ones that count in the directory of a HelmRepository, relative to it; nil counts all.
	Archives map[store.Key][]string
	// Ambient lets the user's own registry logins stand in where no Secret is named.
	Ambient bool
	// Reach is how far they, and the identity of the machine, may go.
	Reach Reach
	// PrivateRedirects follows redirects from public hosts to private addresses, also with a login of this machine.
	PrivateRedirects bool
	// RegistryConfig is the file to read them from, "" for the usual ones.
	RegistryConfig string
	// RepositoryConfig is Helm's repositories.yaml, "" for the usual one.
	RepositoryConfig string
	// MissingSecrets says what stands in for a Secret that is not in the input: one
	// of the constants below.
	MissingSecrets string
	// Trust is what keyless signatures rest on where no Secret says so, nil for the
	// public Sigstore's. TrustCache is the directory that keeps that one for a day,
	// "" for none.
	Trust      *Trust
	TrustCache string
	// Keyring has charts without spec.verify checked against their provenance
	// files; VerifyDependencies those that packaged charts require, too.
	Keyring            *Keyring
	VerifyDependencies bool
	// RequireVerification fails charts that are not verified.
	RequireVerification bool
	// AdvertisedAddress is where the artifacts directory is served; empty means
	// file:// URLs.
	AdvertisedAddress string
	// DigestAlgorithm makes the revisions of buckets; empty means SHA-256.
	DigestAlgorithm string
	// Cache keeps what is downloaded for later runs; nil is none. The caller closes it.
	Cache *cache.Cache
	// Offline opens no connection: what the cache does not have is an error. Online is the command that would get it.
	Offline bool
	Online  string
}

// Line is where the way of an object is cut.
type Line int

const (
	// Fetch takes objects into storage, and remembers what became of them.
	Fetch Line = iota
	// Choose stops once it is known what each object asks for, and what a controller would see
	// at that moment. Nothing is stored or remembered.
	Choose
)

// checksSignatures reports whether the run verifies what it chooses.
func (o *Options) checksSignatures() bool { return o.Until == Fetch || o.Verify }

// The values of Options.MissingSecrets.
const (
	MissingSecretsFail      = credential.MissingFail
	MissingSecretsAmbient   = credential.MissingAmbient
	MissingSecretsAnonymous = credential.MissingAnonymous
)

// ChartLimits bounds the charts, in bytes.
type ChartLimits struct{ Archive, File, Unpacked int64 }

// Edges are a run's connections to the world.
type Edges struct {
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	Getenv    func(string) string
	Now       func() time.Time
	UserAgent string
}

// Transfer is how a download gets on.
type Transfer = fetch.Progress

// Progress hears how a run goes. Its methods are called from many goroutines,
// but for one object in order.
type Progress interface {
	Started(*admission.Admitted)
	Transferred(*admission.Admitted, Transfer)
	// Decided is called with a decision about an object, in words, if [Options.Decisions] asks for them.
	Decided(adm *admission.Admitted, decision string)
	// Waits is called when another process has had the object for a second, and with false when it has it no more.
	Waits(adm *admission.Admitted, waits bool)
	Finished(*Result)
}

// State is how an object left the run.
type State int

const (
	// Ready objects have the artifact that their spec asks for.
	Ready State = iota
	// Failed objects have a Failure.
	Failed
	// Suspended objects were left alone.
	Suspended
	// Static objects have no status by design.
	Static
	// Resolved objects are known to a version, which is not stored.
	Resolved
	// Waiting objects have everything that they need but a cluster.
	Waiting
	// Interrupted objects were cut off by the end of the run's context.
	Interrupted
)

// Result is what became of one object. Its reconciliation fills it and no longer changes it once
// Progress.Finished has it: objects that refer to this one read it from other goroutines. The caller of
// Run may keep it after Close, but for its Source, which ends with the run.
type Result struct {
	Object   *admission.Admitted
	State    State
	Status   map[string]any // of the document; nil prints none
	Events   []status.Event
	Failure  *status.Failure
	Warnings warnings
	Debug    []string
	// Resolution is what a chart resolved to, as far as it got.
	Resolution *Resolution
	// Pin is what the object was resolved to, nil if it did not get that far or resolves to nothing.
	Pin *Pin
	// Dependencies are the charts that it requires of repositories, in the order in which it names them. They are known
	// if it was packaged, or verified with them.
	Dependencies []DependencyPin
	// Built is what the package was made of, if this run made one.
	Built *Built
	// Published is what there is of it, if that was asked for.
	Published *Published
	// Summary says in words what became of an object, where its conditions do not say so.
	Summary string
	// Signature is who signed the chart, nil if nothing was verified.
	Signature *Signature
	// Signed is what a GitRepository resolved to, nil if its signatures were not verified.
	Signed *SignedRevision

	notes  map[string]string // annotations of the document
	shown  map[string]any    // the document without its status, once it is asked for
	source Source            // what the object holds, nil for nothing
	common commonStatus      // what Status is made of
}

// Resolution says which published chart an object asks for.
type Resolution struct {
	Chart, Constraint, Version string
	URL                        string // redacted
	Digest                     string
}

// Message is the state in words: the Ready condition's, or the failure's.
func (r *Result) Message() string {
	if r.Failure != nil {
		return r.Failure.Message
	}
	if r.Summary != "" {
		return r.Summary
	}
	if ready := apimeta.FindStatusCondition(r.common.conditions, meta.ReadyCondition); ready != nil {
		return ready.Message
	}
	return ""
}

// Reconciler reconciles the objects of one run. New makes it, Close ends it with all files and
// connections that it opened. What is in it is what objects have in common: nothing of it changes
// after New but memos, which are safe for many goroutines.
type Reconciler struct {
	kinds      Table
	inventory  *inventory.Inventory
	secrets    *credential.Reader
	store      storage
	client     *fetch.Client
	registries *oci.Client // shares client
	now        func() time.Time
	getenv     func(string) string
	o          Options
	limits     chart.Limits
	progress   Progress
	cache      *cache.Cache // nil is none
	blobs      *blob.Pool   // all that is downloaded, but for indexes and trees

	results     work.Memo[store.Key, *Result]
	opened      work.Memo[store.Key, *repository]
	indexes     work.Memo[string, *indexFile]
	stored      work.Memo[store.Key, *indexFile] // indexes of earlier runs
	tags        work.Memo[chartKey, []string]
	pinned      work.Memo[chartKey, *oci.Manifest]
	plain       work.Memo[schemeKey, bool]
	moving      work.Memo[chartKey, pinnedTag]     // tags of OCIRepositories
	artifacts   work.Memo[chartKey, *oci.Artifact] // by digest
	signers     work.Memo[signatureKey, *verify.Signer]
	roots       work.Memo[string, *Trust]
	provenances work.Memo[string, *verify.Signer]
	trust       func() *Trust
	reading     func() http.RoundTripper // to servers that get no credentials

	looked     map[store.Key][]string    // at paths of GitRepositories
	valueFiles work.Memo[string, []byte] // by URL

	outputs work.Memo[store.Key, *generatedArtifacts] // of ArtifactGenerators
	sources work.Memo[store.Key, *manifest.Object]    // that only a directory stands for

	closers closers
	temp    store.Scratch // for what goes when the run ends
}

// New returns the reconciler of one run for objects of these kinds. Close must be called after it.
func New(kinds Table, inv *inventory.Inventory, st *store.Store, e Edges, o Options) *Reconciler {
	if o.Offline {
		e.Dial = fetch.RefuseDial
	}
	client := fetch.NewClient(fetch.Config{
		Dial: e.Dial, Getenv: e.Getenv, UserAgent: e.UserAgent, Now: e.Now, Retries: o.Retries, PrivateRedirects: o.PrivateRedirects,
	})
	registries := oci.NewClient(client)
	var storage storage = st
	if o.Until == Choose {
		storage = readOnly{st}
	}
	reading := sync.OnceValue(registries.Reading)
	return &Reconciler{
		kinds:      kinds,
		inventory:  inv,
		secrets:    credential.NewReader(inv.Set(), secretOptions(client, o)),
		store:      storage,
		client:     client,
		registries: registries,
		now:        e.Now,
		getenv:     e.Getenv,
		reading:    reading,
		cache:      o.Cache,
		blobs:      blob.NewPool(0, o.Cache),
		trust:      sync.OnceValue(newTrust(o, reading)),
		o:          o,
		limits:     chart.Limits{Archive: o.Chart.Archive, File: o.Chart.File, Unpacked: o.Chart.Unpacked},
	}
}

func secretOptions(c *fetch.Client, o Options) credential.Options {
	e := c.Config
	return credential.Options{
		Missing: o.MissingSecrets,
		Ambient: o.Ambient,
		Own:     auth.AmbientOptions{Getenv: e.Getenv, RegistryConfig: o.RegistryConfig, Reach: o.Reach},
		Machine: auth.CloudOptions{
			Dial: e.Dial, Getenv: e.Getenv, Now: e.Now, Reach: o.Reach, Acquire: c.Acquire, Leave: fetch.LeaveHost,
		},
		RepositoryConfig: o.RepositoryConfig,
		SkipTLSVerify:    o.SkipTLSVerify,
	}
}

// Timeout is the cause for a run's context that ends after a limit that the user
// can set by the flag or field of this name.
func Timeout(name string, after time.Duration) error {
	return &fetch.TimeoutError{Name: name, After: after}
}

// digestPolicy is what --index-digest asks for.
func (o Options) digestPolicy() fetch.DigestPolicy {
	switch o.IndexDigest {
	case "warn":
		return fetch.DigestWarn
	case "ignore":
		return fetch.DigestIgnore
	}
	return fetch.DigestEnforce
}

// Class says what kind of failure an object's is, for the exit code.
type Class int

const (
	// Permanent failures need a change to the input or the machine.
	Permanent Class = iota
	// Transient failures may go away by themselves.
	Transient
	// Integrity failures are bytes or signatures that are not what they should be.
	Integrity
	// Drift is that manifests and lock do not fit.
	Drift
)

// ClassOf is the class of a failure.
func ClassOf(err error) Class {
	var integrity interface{ Integrity() bool }
	var drift interface{ Drift() bool }
	switch {
	case errors.As(err, &drift) && drift.Drift():
		return Drift
	case errors.As(err, &integrity) && integrity.Integrity():
		return Integrity
	case fetch.Transient(err):
		return Transient
	}
	return Permanent
}

// Close lets go of the files and connections that the run kept open.
func (r *Reconciler) Close() error {
	r.registries.CloseIdleConnections()
	return errors.Join(r.blobs.Close(), r.closers.close(), r.temp.Close())
}

// Run reconciles the objects and returns their results in the same order. The error is
// that the next run would not remember what became of those without artifacts.
func (r *Reconciler) Run(ctx context.Context, objects []*admission.Admitted, progress Progress) ([]*Result, error) {
	r.progress, r.looked = progress, lookedAt(objects)
	results := make([]*Result, len(objects))
	order := r.kinds.sourcesFirst(objects)
	work.Ordered(len(order), r.o.Concurrency, func(i int) {
		for _, at := range order[i] {
			results[at] = r.finished(ctx, objects[at])
		}
	})
	return results, r.save(ctx)
}

// saveTimeout is for other processes that save at the same time, which takes them
// milliseconds.
const saveTimeout = 10 * time.Second

// save also writes down what a run got to that was cut off.
func (r *Reconciler) save(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	return r.store.Save(ctx)
}

// sourcesFirst says which objects are reconciled one after the other, and in which order
// to begin with them. A chart waits for its source inside its slot: sources go first, so
// that there is always one that does not wait. A release follows what it takes its chart
// from in the same slot, while others wait for the network or the disk.
func (t Table) sourcesFirst(objects []*admission.Admitted) [][]int {
	var sources, others, releases []int
	for i, adm := range objects {
		var info kindInfo
		if k, ok := t.of(adm.Object); ok {
			info = k.about()
		}
		switch {
		case info.source:
			sources = append(sources, i)
		case info.noArtifact:
			releases = append(releases, i)
		default:
			others = append(others, i)
		}
	}
	var order [][]int
	slots := map[store.Key]int{}
	for _, i := range slices.Concat(sources, others) {
		slots[keyOf(objects[i])] = len(order)
		order = append(order, []int{i})
	}
	for _, i := range releases {
		kind, namespace, name, _ := t.SourceRef(objects[i])
		if at, ok := slots[store.NewKey(kind, namespace, name)]; ok {
			order[at] = append(order[at], i)
		} else {
			order = append(order, []int{i})
		}
	}
	return order
}

// finished is the result of an object, also if the run ended while another goroutine was
// at it: that one ends, too, and has the document.
func (r *Reconciler) finished(ctx context.Context, adm *admission.Admitted) *Result {
	result := r.result(ctx, adm)
	if result.State == Interrupted && result.Failure == nil {
		result = r.result(context.WithoutCancel(ctx), adm)
	}
	return result
}

// result reconciles an object, or waits for the goroutine that does.
func (r *Reconciler) result(ctx context.Context, adm *admission.Admitted) *Result {
	result, err := r.results.Do(ctx, keyOf(adm), func() (*Result, error) {
		r.progress.Started(adm)
		result := r.finishedBefore(adm)
		if result == nil {
			result = r.reconcile(ctx, adm)
		}
		r.progress.Finished(result)
		return result, nil
	})
	if err != nil { // ctx ended while another goroutine was at it
		return &Result{Object: adm, State: Interrupted}
	}
	return result
}

func keyOf(adm *admission.Admitted) store.Key {
	return store.NewKey(adm.Object.Kind, adm.Object.Namespace, adm.Object.Name)
}
