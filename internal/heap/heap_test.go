package heap

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"
)

// percent is what the collector goes by.
func percent() int {
	now := debug.SetGCPercent(early)
	debug.SetGCPercent(now)
	return now
}

// TestSettle runs in a process of its own: the first collection comes once.
func TestSettle(t *testing.T) {
	for _, gogc := range []string{"", "50"} {
		t.Run("GOGC="+gogc, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSettleProcess$", "-test.count=1")
			c.Env = append(os.Environ(), "HEAP_PROCESS=1", "GOGC="+gogc)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestSettleProcess(t *testing.T) {
	if os.Getenv("HEAP_PROCESS") == "" {
		return
	}
	want := runtimeDefault
	if given, err := strconv.Atoi(os.Getenv("GOGC")); err == nil {
		want = given
	}
	if got := percent(); got != early {
		t.Errorf("before main: %d %%, want %d", got, early)
	}
	Settle()
	if got := percent(); want != runtimeDefault && got != want {
		t.Errorf("with a GOGC: %d %%, want %d", got, want)
	}
	runtime.GC()
	for deadline := time.Now().Add(10 * time.Second); percent() != want; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("after a collection: %d %%, want %d", percent(), want)
		}
	}
}
