package console

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty opens a terminal: text that is written to tty can be read from screen, line feeds as such.
func pty(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.ONLCR
		err = unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

func resizePTY(t *testing.T, screen *os.File, width, height uint16) {
	t.Helper()
	size := &unix.Winsize{Col: width, Row: height}
	if err := unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
}

// TestRealTerminal paints on a terminal of the system's, whose window changes.
func TestRealTerminal(t *testing.T) {
	screen, tty := pty(t)
	at := time.Now()
	l := newLiveRows(tty, func() (int, int, bool) { return TerminalSize(tty) }, Rows{Now: func() time.Time { return at }}, true)
	l.running, l.sum.began = true, at
	l.expect(200)
	for i := range 200 {
		l.add(chartNamed(fmt.Sprint("chart-", i)))
	}
	resizePTY(t, screen, 80, 10)
	v := newVT(t, 80, 10)
	show := func() string {
		const end = "#" // which no frame has
		if _, err := io.WriteString(tty, end); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 4096)
		for {
			n, err := screen.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			text, found := strings.CutSuffix(string(buffer[:n]), end)
			_, _ = io.WriteString(v, text)
			if found {
				return v.screen()
			}
		}
	}
	l.repaint("")
	if got := show(); strings.Count(got, "\n") != 7 || !strings.HasSuffix(got, "0 of 200 done, 200 in progress") {
		t.Errorf("80x10:\n%s", got)
	}
	resizePTY(t, screen, 40, 6)
	v.resize(40, 6)
	l.repaint("")
	if got := show(); strings.Count(got, "\n") != 3 || !strings.HasPrefix(got, "apps/chart-0  …\napps/chart-1  …\n") {
		t.Errorf("40x6:\n%s", got)
	}
	l.running, l.rows = false, nil
	l.repaint("")
	if got := show(); got != "" || v.hidden {
		t.Errorf("in the end, with the cursor hidden: %t\n%s", v.hidden, got)
	}
}

func TestTerminalSize(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, _, ok := TerminalSize(file); ok {
		t.Error("a file is a terminal")
	}
	_, tty := pty(t) // of no size, as serial lines are
	if width, height, ok := TerminalSize(tty); width != 80 || height != 24 || !ok {
		t.Errorf("%dx%d, %t", width, height, ok)
	}
}
