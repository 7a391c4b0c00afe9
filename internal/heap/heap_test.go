package heap

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"
)

// percent returns the current percentage of the collector.
func percent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// TestAdapt runs in a separate process: initialisation before main happens only once.
func TestAdapt(t *testing.T) {
	for _, gogc := range []string{"", "50"} {
		t.Run("GOGC="+gogc, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAdaptProcess$", "-test.count=1")
			c.Env = append(os.Environ(), "HEAP_PROCESS=1", "GOGC="+gogc)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAdaptProcess(t *testing.T) {
	if os.Getenv("HEAP_PROCESS") == "" {
		return
	}
	if got := percent(); got != early {
		t.Errorf("before main: %d %%, want %d", got, early)
	}
	Adapt()
	given, err := strconv.Atoi(os.Getenv("GOGC"))
	if err == nil {
		if got := percent(); got != given {
			t.Errorf("with a GOGC: %d %%, want %d", got, given)
		}
	}
	// More and more is in use: the floor counts less and less, and then not at all.
	var used [][]byte
	for _, want := range []int{600, 300, 90, 50} {
		used = append(used, make([]byte, 5<<20))
		if want < 100 {
			used = append(used, make([]byte, floor))
		}
		if err == nil {
			want = given
		}
		runtime.GC()
		for deadline := time.Now().Add(10 * time.Second); percent() > want; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("after a collection: %d %%, want at most %d", percent(), want)
			}
		}
	}
	if got := percent(); err != nil && got < leanest {
		t.Errorf("with much in use: %d %%, want at least %d", got, leanest)
	}
	runtime.KeepAlive(used)
}

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{
		0: most, 1 << 20: most, 4 << 20: 700, 8 << 20: 300, floor / 2: 100, floor: 100, headroom: 100, 2 * headroom: 50, 4 * headroom: 25,
		5 * headroom: leanest, 1 << 40: leanest,
	} {
		if got := percentFor(live); got != want {
			t.Errorf("with %d bytes in use: %d %%, want %d", live, got, want)
		}
	}
}
