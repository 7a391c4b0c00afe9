package fetch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const pieceBytes = 256 << 10

// pumped gives a transfer to Pump.
func pumped(t *testing.T, raw func() io.Reader, consume func(io.Reader) error, check func(t *testing.T, written string, err error)) {
	t.Helper()
	var dst bytes.Buffer
	b := &Body{Ctx: t.Context(), Raw: raw(), Left: 64 << 20, TooLarge: errors.New("too large")}
	err := Pump(b, &dst, consume)
	check(t, dst.String(), err)
}

func TestPump(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 12*pieceBytes/16) + "end"
	whole := func(t *testing.T, written string, err error) {
		if err != nil || written != content {
			t.Errorf("wrote %d bytes of %d, error %v", len(written), len(content), err)
		}
	}
	all := func() io.Reader { return strings.NewReader(content) }
	pieces := func() io.Reader { return iotest.DataErrReader(iotest.HalfReader(strings.NewReader(content))) }
	readAll := func(r io.Reader) error {
		got, err := io.ReadAll(r)
		if err == nil && string(got) != content {
			err = errors.New("the consumer got something else")
		}
		return err
	}
	t.Run("read to the end", func(t *testing.T) { pumped(t, all, readAll, whole) })
	t.Run("read in pieces of different sizes", func(t *testing.T) { pumped(t, pieces, readAll, whole) })
	t.Run("not read", func(t *testing.T) { pumped(t, all, func(io.Reader) error { return nil }, whole) })
	t.Run("read in part", func(t *testing.T) {
		pumped(t, pieces, func(r io.Reader) error {
			_, err := io.ReadFull(r, make([]byte, pieceBytes+1))
			return err
		}, whole)
	})

	// An error of the network counts, regardless of the consumer's error.
	cut := errors.New("cut off")
	broken := func() io.Reader { return io.MultiReader(strings.NewReader(content), iotest.ErrReader(cut)) }
	refuse := errors.New("refused")
	is := func(want error) func(*testing.T, string, error) {
		return func(t *testing.T, _ string, err error) {
			if !errors.Is(err, want) {
				t.Errorf("got error %v, want %v", err, want)
			}
		}
	}
	t.Run("cut off", func(t *testing.T) { pumped(t, broken, readAll, is(cut)) })
	t.Run("cut off and refused", func(t *testing.T) {
		pumped(t, broken, func(r io.Reader) error {
			_, _ = io.Copy(io.Discard, r)
			return refuse
		}, is(cut))
	})
	t.Run("refused", func(t *testing.T) { pumped(t, all, func(io.Reader) error { return refuse }, is(refuse)) })
}

// TestPumpHasBounds refuses the content after a byte, and checks how much was transferred.
func TestPumpHasBounds(t *testing.T) {
	r := &countingReader{}
	b := &Body{Ctx: t.Context(), Raw: r, Left: 64 << 20}
	refuse := errors.New("refused")
	err := Pump(b, io.Discard, func(r io.Reader) error {
		_, err := r.Read(make([]byte, 1))
		return errors.Join(err, refuse)
	})
	if !errors.Is(err, refuse) || r.bytes > pieceBytes {
		t.Errorf("got %v after %d bytes, want at most %d", err, r.bytes, pieceBytes)
	}
}

type countingReader struct{ bytes int }

func (r *countingReader) Read(p []byte) (int, error) {
	r.bytes += len(p)
	return len(p), nil
}
