package kustomize

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestBudget counts the memory and work of all builds of a run, in proportion to their input.
func TestBudget(t *testing.T) {
	for _, test := range []struct {
		read, weight, work int64
		ok                 bool
	}{
		{0, baseMemory, 0, true}, {0, baseMemory + 2, 0, false}, {100, baseMemory + 100*memoryShare, 0, true}, {100, baseMemory + 100*memoryShare + 2, 0, false},
		{0, 0, baseWork - 4*readWork, true}, {0, 0, baseWork, false}, {1 << 20, 0, baseWork + workShare<<20 - 4*readWork - 2*byteWork<<20, true}, {1 << 20, 0, baseWork + workShare<<20, false},
	} {
		ended := 0
		b := NewBudget(func(error) { ended++ })
		err := errors.Join(b.Read("a", "a", int(test.read)), b.Read("a", "a", int(test.read)), // the same file
			b.Keep("a", test.weight/2), b.Keep("b", test.weight/2), b.Work("a", test.work/2), b.Work("b", test.work/2))
		if (err == nil) != test.ok || (b.Failure() == nil) != test.ok || test.ok == (ended == 1) {
			t.Errorf("%+v: %v, failure %v, ended %d times", test, err, b.Failure(), ended)
		}
	}
}

// TestAnchored refuses a file whose anchors need far more work than its length suggests.
func TestAnchored(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &a {" + strings.Repeat("a: b, ", 2000) + "}\nmore: ["
	for aliases, refused := range map[int]bool{1: false, 1000: true} {
		b := &Build{Budget: NewBudget(func(error) {}), What: "k"}
		_, err := b.Objects([]byte(object + strings.Repeat("*a,", aliases) + "]\n"))
		var exhausted *ExhaustedError
		if errors.As(err, &exhausted) != refused {
			t.Errorf("%d aliases: %v", aliases, err)
		}
	}
}

// TestEqualKeys refuses an object whose equal keys need far more memory than the object, also as an inline plugin.
func TestEqualKeys(t *testing.T) {
	head := "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: a}\nlabels: {"
	for text, refused := range map[string]bool{
		head + strings.Repeat("a: b, ", 141) + "}\n":                                                 false, // 9,870 pairs
		head + strings.Repeat("a: b, ", 142) + "}\n":                                                 true,
		head + strings.Repeat("a: b, ", 100) + strings.Repeat("c: d, ", 100) + "}\n":                 false,
		head + strings.Repeat("a: b, ", 141) + "}\nmore: [{" + strings.Repeat("a: b, ", 17) + "}]\n": true,
		head + strings.Repeat("a: b, ", 141) + "}\nmore: [{" + strings.Repeat("a: b, ", 16) + "}]\n": false, // not counted
		head + "}\nmore: [&a {" + strings.Repeat("a: b, ", 100) + "}, *a]\n":                         false,
		head + "}\nmore: [&a {" + strings.Repeat("a: b, ", 100) + "}, *a, *a]\n":                     true,
	} {
		b := &Build{Budget: NewBudget(func(error) {}), What: "k"}
		if _, err := b.Objects([]byte(text)); errors.Is(err, errEqual) != refused {
			t.Errorf("%.200s: %v", text, err)
		}
	}
	_, _, err := built(t, textsOf(map[string]string{"k/kustomization.yaml": "transformers:\n- |\n  " + strings.ReplaceAll(head, "\n", "\n  ") + strings.Repeat("a: b, ", 142) + "}\n"}))
	if !errors.Is(err, errEqual) {
		t.Error(err)
	}
}

// TestWatched ends builds that cannot be stopped: the time of the run is over, its context ends, or the heap is too large.
func TestWatched(t *testing.T) {
	ended := 0
	budget := NewBudget(func(error) { ended++ })
	budget.took = baseTime
	release := make(chan struct{})
	_, err := watched(t.Context(), budget, "k", func(ctx context.Context) (int, error) {
		<-ctx.Done()
		close(release)
		return 0, nil
	})
	if _, ok := errors.AsType[*ExhaustedError](err); !ok || ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
	<-release // its context ends

	ctx, cancel := context.WithCancel(t.Context())
	release = make(chan struct{})
	_, err = watched(ctx, NewBudget(func(error) {}), "k", func(context.Context) (int, error) {
		cancel()
		<-release
		return 0, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}

	budget = NewBudget(func(error) {})
	budget.took = baseTime - 4*watchInterval
	_, err = watched(t.Context(), budget, "k", func(context.Context) (int, error) {
		t.Error("a build runs beside one that was left")
		return 0, nil
	})
	if _, ok := errors.AsType[*ExhaustedError](err); !ok {
		t.Error(err)
	}
	close(release)
	if one, err := watched(t.Context(), NewBudget(func(error) {}), "k", func(context.Context) (int, error) { return 1, nil }); one != 1 || err != nil {
		t.Errorf("after the build that was left: %v", err)
	}

	kept := make([]byte, 4<<20)
	budget = NewBudget(func(error) {})
	limit := uint64(heapFactor * baseMemory)
	if budget.before = 1<<20 - limit; budget.tick("k") == nil { // before wraps: the limit is 1 MiB
		t.Error("a large heap is accepted")
	}
	runtime.KeepAlive(kept)
}

// TestEnded: no build begins after the context has ended, when an earlier one may still run.
func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := asked{textsOf(map[string]string{"k/kustomization.yaml": "namePrefix: a-\n"}), make(chan string, 1)}
	k, file, err := source.Kustomization("/k")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&Build{Source: source, Budget: NewBudget(func(error) {}), What: "k"}).Run(ctx, "/k", file, k); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case path := <-source.paths:
		t.Errorf("the build reads %s", path)
	case <-time.After(50 * time.Millisecond):
	}
}

// asked is a source that sends the paths of directories.
type asked struct {
	Texts
	paths chan string
}

func (a asked) Directory(path string) (string, error) {
	a.paths <- path
	return a.Texts.Directory(path)
}
