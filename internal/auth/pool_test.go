package auth

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

type failingConn struct {
	net.Conn
	err error
}

func (c failingConn) Write(b []byte) (int, error) { return len(b) - 1, c.err }

// TestPatientConn: only errors that the other side caused are left to the reader.
func TestPatientConn(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 2}, {net.ErrClosed, 2}, {os.ErrDeadlineExceeded, 2}, {syscall.EPIPE, 3}, {syscall.ECONNRESET, 3}, {io.ErrUnexpectedEOF, 3},
	} {
		n, err := patientConn{failingConn{err: test.err}}.Write([]byte("abc"))
		if n != test.want || test.want == 3 && err != nil || test.want == 2 && !errors.Is(err, test.err) {
			t.Errorf("%v: %d, %v", test.err, n, err)
		}
	}
}
