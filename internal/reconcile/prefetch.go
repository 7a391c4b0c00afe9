package reconcile

import (
	"context"
	"errors"
	"io"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/chart"
	"github.com/helmsrc/helmsrc/internal/resolve"
	"github.com/helmsrc/helmsrc/internal/store"
)

// A prefetch downloads the archive of a chart while the index that it was found in
// is still being stored, which takes about as long. It decides nothing: what it
// has got counts only if the chart, once its source is done, asks for just that.
type prefetch struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it is over; the rest is valid from then on

	file   *indexFile
	chosen *pick // in the file, nil if there is none
	found  notes // about the choice

	pending *store.Pending // nil if nothing was downloaded
	err     error          // of the download, or of what was downloaded
	pulled  notes          // about that
}

// prefetch begins the prefetch of a chart whose archive may be stored as it was
// published, or returns nil.
func (p *pass) prefetch(ctx context.Context, obj *sourcev1.HelmChart, source *admission.Admitted) *prefetch {
	o := &p.r.o
	_, indexed := source.Typed.(*sourcev1.HelmRepository)
	if !indexed || o.ResolveOnly || obj.Spec.Verify != nil || o.Keyring != nil || o.RequireVerification ||
		len(chart.EffectiveValuesFiles(obj.Spec.ValuesFiles)) > 0 {
		return nil
	}
	f := &prefetch{done: make(chan struct{})}
	ctx = f.pulled.hear(ctx)
	ctx, f.cancel = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		defer func() { _ = recover() }() // the chart itself will come to the same place
		if file := p.r.arrival(keyOf(source)).wait(ctx); file != nil {
			f.run(ctx, p, obj, source, file)
		}
	}()
	return f
}

// run downloads what the chart will most likely ask for. Whatever goes wrong before
// that will go wrong again for the chart itself.
func (f *prefetch) run(ctx context.Context, p *pass, obj *sourcev1.HelmChart, source *admission.Admitted, file *indexFile) {
	repo, err := p.r.open(ctx, source)
	if err != nil || resolve.ValidateName(obj.Spec.Chart) != nil {
		return
	}
	charts := &indexCharts{r: p.r, repo: repo, file: file}
	chosen, err := charts.find(ctx, &f.found, obj.Spec.Chart, obj.Spec.Version)
	if err != nil {
		return
	}
	f.file, f.chosen = file, chosen
	fingerprint, err := fingerprintOf(obj.Spec, chosen.url, chosen.entry, (*recipe)(nil))
	if err != nil || chosen.local || p.reusable(fingerprint) {
		return
	}
	p.share(chosen)
	pending, err := p.r.store.Create(p.key)
	if err != nil {
		return
	}
	f.err = p.r.pullInto(ctx, &f.pulled, chosen, pending)
	if f.err == nil {
		_ = pending.Settle() // tried again when it matters
	}
	f.pending = pending
}

// choice returns what was chosen already in the index that a file holds, or nil.
func (f *prefetch) choice(p *pass, file *indexFile) *pick {
	if f == nil {
		return nil
	}
	<-f.done // which ends with its context at the latest
	if f.chosen == nil || f.file.offsets != file.offsets {
		return nil
	}
	p.tell(&f.found)
	return f.chosen
}

// take returns what was prefetched, if it is what was chosen.
func (f *prefetch) take(p *pass, chosen *pick) (pending *store.Pending, err error, ok bool) {
	if f == nil {
		return nil, nil, false
	}
	<-f.done
	if f.pending == nil || f.chosen.id != chosen.id {
		return nil, nil, false
	}
	pending, f.pending = f.pending, nil
	chosen.holds = f.chosen.holds
	p.tell(&f.pulled)
	return pending, f.err, true
}

// stop ends a prefetch and discards what nobody took.
func (f *prefetch) stop(p *pass) {
	if f == nil {
		return
	}
	f.cancel()
	<-f.done
	if f.pending != nil {
		p.discard(f.pending)
	}
}

// An arrival is the moment when an index has been downloaded and read, but not yet
// stored.
type arrival struct {
	once sync.Once
	done chan struct{}
	file *indexFile // nil if it never came
}

// arrival is that of a source in this run.
func (r *Reconciler) arrival(key store.Key) *arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.arrivals[key]
	if a == nil {
		if r.arrivals == nil {
			r.arrivals = map[store.Key]*arrival{}
		}
		a = &arrival{done: make(chan struct{})}
		r.arrivals[key] = a
	}
	return a
}

// announce lets everybody go on who waits. Only the first one counts.
func (a *arrival) announce(file *indexFile) {
	a.once.Do(func() {
		a.file = file
		close(a.done)
	})
}

// wait returns the index, or nil if there will be none.
func (a *arrival) wait(ctx context.Context) *indexFile {
	select {
	case <-a.done:
		return a.file
	case <-ctx.Done():
		return nil
	}
}

// handover is a file that gets another name while it is read.
type handover struct {
	mu   sync.RWMutex
	from io.ReaderAt // nil when there is nothing to read any more
}

var errHandover = errors.New("the file is gone")

// ReadAt implements io.ReaderAt.
func (h *handover) ReadAt(b []byte, off int64) (int, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.from == nil {
		return 0, errHandover
	}
	return h.from.ReadAt(b, off)
}

// during keeps everybody from reading while work is done, and has them read from
// what it returns afterwards.
func (h *handover) during(work func() io.ReaderAt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.from = nil
	h.from = work()
}
