package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// The types of objects in packs.
const (
	packCommit   = 1
	packBlob     = 3
	packOfsDelta = 6
)

// packObject is an object as a pack holds it: it may say another size than it has.
type packObject struct {
	kind    int
	size    int
	base    int // so many bytes before this object, of a delta
	content []byte
}

func (o packObject) bytes() []byte {
	var b bytes.Buffer
	c, size := byte(o.kind<<4|o.size&15), o.size>>4
	for ; size > 0; size >>= 7 {
		b.WriteByte(c | 0x80)
		c = byte(size & 0x7f)
	}
	b.WriteByte(c)
	if o.kind == packOfsDelta {
		b.WriteByte(byte(o.base))
	}
	z := zlib.NewWriter(&b)
	_, _ = z.Write(o.content)
	_ = z.Close()
	return b.Bytes()
}

func pack(objects ...packObject) []byte {
	b := []byte("PACK")
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(objects)))
	for _, o := range objects {
		b = append(b, o.bytes()...)
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

// number is a number as deltas hold it.
func number(n int64) []byte {
	var b []byte
	for ; n > 0x7f; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func receive(t testing.TB, p []byte, l Limits) error {
	s, err := newGitStore(t.TempDir(), l.orDefault())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := os.Create(filepath.Join(s.dir, "pack"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := s.download(bytes.NewReader(p), f); err != nil {
		return err
	}
	return s.index(t.Context(), f)
}

func TestGitPacks(t *testing.T) {
	base := packObject{kind: packBlob, size: 10, content: []byte("0123456789")}
	distance := len(base.bytes())
	// The delta copies the base once.
	delta := append(append(number(10), number(10)...), 0x90, 10)
	huge := append(number(10), number(1<<40)...)
	for range 100 {
		huge = append(huge, 0x90, 10)
	}
	zeros := make([]byte, 1<<20)
	for _, v := range []struct {
		name  string
		pack  []byte
		limit bool
		ok    bool
	}{
		{"good", pack(base, packObject{packOfsDelta, len(delta), distance, delta}), false, true},
		{"empty", pack(), false, true},
		{"delta that says it is huge", pack(base, packObject{packOfsDelta, len(huge), distance, huge}), true, false},
		{"object that says it is huge", pack(packObject{packBlob, 1 << 40, 0, []byte("x")}), true, false},
		{"object that is larger than it says", pack(packObject{packBlob, 10, 0, zeros}), false, false},
		{"object that is smaller than it says", pack(packObject{packBlob, 100, 0, []byte("x")}), false, false},
		{"many objects in the head", append([]byte("PACK\x00\x00\x00\x02"), 0xff, 0xff, 0xff, 0xff), true, false},
		{"delta without numbers", pack(base, packObject{packOfsDelta, 1, distance, []byte{0x80}}), false, false},
		{"delta of nothing", pack(packObject{packOfsDelta, len(delta), 100, delta}), false, false},
		{"cut short", pack(base)[:20], false, false},
		{"wrong sum", append(pack(base)[:len(pack(base))-1], 0), false, false},
		{"no pack", []byte(strings.Repeat("x", 100)), false, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			err := receive(t, v.pack, Limits{})
			if (err == nil) != v.ok || (finding.CodeOf(err) == finding.TooLarge) != v.limit {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Any answer of a server is read or refused: it does not crash the program.
func FuzzGitPack(f *testing.F) {
	base := packObject{kind: packBlob, size: 10, content: []byte("0123456789")}
	delta := append(append(number(10), number(10)...), 0x90, 10)
	f.Add(pack(base))
	f.Add(pack(base, packObject{packOfsDelta, len(delta), len(base.bytes()), delta}))
	f.Add(pack(packObject{packCommit, 5, 0, []byte("tree ")}))
	f.Fuzz(func(t *testing.T, p []byte) {
		_ = receive(t, p, Limits{Object: 1 << 20, Unpacked: 1 << 22, Objects: 100})
	})
}

// TestReferencesCut refuses a list of references without its end mark: the missing references may have been moved.
func TestReferencesCut(t *testing.T) {
	conn := &gitSSH{url: &url.URL{}}
	line := strings.Repeat("1", 40) + " refs/heads/main\n"
	whole := fmt.Sprintf("%04x%s0000", len(line)+4, line)
	for n := range len(whole) + 1 {
		refs, err := readReferences(newPackets(conn, strings.NewReader(whole[:n]), "", 1<<16), []string{"refs/heads/"})
		if complete := n == len(whole); complete != (err == nil) || complete && len(refs) != 1 {
			t.Errorf("%q: %v, %v", whole[:n], refs, err)
		}
	}
}

// TestPackets reads one packet: its first digits are its kind and its length.
func TestPackets(t *testing.T) {
	conn := &gitSSH{url: &url.URL{}}
	for text, want := range map[string]struct {
		size int
		kind packetKind
		err  error
	}{
		"0000": {0, flushPacket, nil}, "0001": {0, delimiterPacket, nil}, "0002": {0, delimiterPacket, nil}, "0004": {0, dataPacket, nil}, "0005a": {1, dataPacket, nil},
		"fff0" + strings.Repeat("a", maxPacket-4): {maxPacket - 4, dataPacket, nil}, "fff1" + strings.Repeat("a", maxPacket-3): {err: errGitProtocol},
		"0003": {err: errGitProtocol}, "zzzz": {err: errGitProtocol}, "-001": {err: errGitProtocol}, "": {err: errCutShort}, "000": {err: errCutShort}, "0006a": {err: errCutShort},
	} {
		payload, kind, err := newPackets(conn, strings.NewReader(text), "", 1<<16+1).next()
		if len(payload) != want.size || kind != want.kind || !errors.Is(err, want.err) {
			t.Errorf("%.8s: %d bytes of kind %d, %v", text, len(payload), kind, err)
		}
		if _, _, err := newPackets(conn, strings.NewReader(text), "", 1<<16+1).line(); !errors.Is(err, want.err) {
			t.Errorf("%.8s: %v as a line", text, err)
		}
	}
}

// TestReferencesRead parses lines strictly: a hash alone is not a reference, and a peeled hash without its tag is not the commit
// of a tag.
func TestReferencesRead(t *testing.T) {
	conn := &gitSSH{url: &url.URL{}}
	read := func(line string) ([]gitReference, error) {
		return readReferences(newPackets(conn, strings.NewReader(fmt.Sprintf("%04x%s0000", len(line)+4, line)), "", 1<<16), []string{"refs/"})
	}
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	if refs, err := read(one); !errors.Is(err, errGitProtocol) {
		t.Errorf("%v, %v", refs, err)
	}
	for line, peeled := range map[string]string{"peeled:" + two: two, two: strings.Repeat("0", 40), "peeled:2222": strings.Repeat("0", 40)} {
		if refs, err := read(one + " refs/tags/a " + line); err != nil || len(refs) != 1 || refs[0].peeled.String() != peeled || refs[0].hash.String() != one {
			t.Errorf("%s: %v, %v", line, refs, err)
		}
	}
}

func FuzzGitAdvertisement(f *testing.F) {
	hash := strings.Repeat("1", 40)
	f.Add([]byte("001e# service=git-upload-pack\n0000000eversion 2\n0000"))
	line := hash + " HEAD\x00shallow symref=HEAD:refs/heads/main\n"
	f.Add([]byte(fmt.Sprintf("%04x%s0000", len(line)+4, line)))
	f.Add([]byte("0000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		conn := &gitSSH{url: &url.URL{}}
		r := &gitRemote{caps: map[string]string{}}
		if r.readAdvertisement(newPackets(conn, bytes.NewReader(data), "", 1<<16)) == nil {
			_, _ = readReferences(newPackets(conn, bytes.NewReader(data), "", 1<<16), []string{""})
		}
		s := &packStream{packets: newPackets(conn, bytes.NewReader(data), "", 1<<16), answer: io.NopCloser(nil)}
		_, _ = io.Copy(io.Discard, s)
	})
}
