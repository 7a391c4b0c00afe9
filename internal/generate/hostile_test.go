package generate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Hostile entries of an archive that Extract unpacks are refused before they are written.
func TestHostileArchives(t *testing.T) {
	of := func(h tar.Header) string { return archive(t, &h) }
	file := archive(t, &tar.Header{Name: "x", Linkname: strings.Repeat("x", 5000), Mode: 0o644})
	tests := map[string]struct{ archive, want string }{
		"above the root":         {of(tar.Header{Name: "../x", Linkname: "x"}), "leads out of the archive"},
		"above it on a detour":   {of(tar.Header{Name: "a/../../x", Linkname: "x"}), "leads out of the archive"},
		"an absolute path":       {of(tar.Header{Name: "/etc/x", Linkname: "x"}), "leads out of the archive"},
		"a path of Windows":      {of(tar.Header{Name: "..\\x", Linkname: "x"}), "leads out of the archive"},
		"a directory above":      {of(tar.Header{Name: "../dir/", Typeflag: tar.TypeDir}), "leads out of the archive"},
		"a symbolic link":        {of(tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "is not a regular file"},
		"a hard link":            {of(tar.Header{Name: "link", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), "is not a regular file"},
		"a device":               {of(tar.Header{Name: "zero", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5}), "is not a regular file"},
		"a disk":                 {of(tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}), "is not a regular file"},
		"a pipe":                 {of(tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}), "is not a regular file"},
		"a lot of zeros":         {bomb(t), "it unpacks to more than 100 MiB"},
		"a file with a hole":     {sparse(t), "it unpacks to more than 100 MiB"},
		"more files than a tree": {crowd(t), "more than 100000 files"},
		"half an archive":        {file[:len(file)/2], "unexpected EOF"},
		"a file and a directory": {archive(t, &tar.Header{Name: "x", Linkname: "1"}, &tar.Header{Name: "x/y", Linkname: "2"}), "not a directory"},
		"a directory and a file": {archive(t, &tar.Header{Name: "x/", Typeflag: tar.TypeDir}, &tar.Header{Name: "x", Linkname: "2"}), "is a directory"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files, _, err := made(t, copying(op("@a/*.tgz", "@artifact/to", "strategy: Extract")), treeOf(t, "x.tgz="+tt.archive))
			refused, ok := errors.AsType[*Error](err)
			if !ok || refused.Reason != BuildFailed || !strings.Contains(err.Error(), tt.want) || len(files) > 0 {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// sparse is a tiny archive of a file that is nearly all hole, of a size that no disk has.
func sparse(t *testing.T) string {
	t.Helper()
	const size = 1 << 40
	block := func(name string, flag byte, content string) string {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], fmt.Sprintf("%07o\x00%07o\x00%07o\x00%011o\x00%011o\x00", 0o644, 0, 0, len(content), 0))
		copy(h[148:], "        ")
		h[156] = flag
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		return string(h) + content + strings.Repeat("\x00", (512-len(content)%512)%512)
	}
	records := ""
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=hole", fmt.Sprintf("GNU.sparse.realsize=%d", size)} {
		n := len(r) + 4 // with its own length, which has two digits
		records += fmt.Sprintf("%d %s\n", n, r)
	}
	holes := fmt.Sprintf("1\n%d\n1\n", size-1)
	content := holes + strings.Repeat("\x00", 512-len(holes)) + "x"
	text := block("pax", tar.TypeXHeader, records) + block("hole", tar.TypeReg, content) + strings.Repeat("\x00", 1024)
	if h, err := tar.NewReader(strings.NewReader(text)).Next(); err != nil || h.Size != size {
		t.Fatalf("%+v, %v", h, err)
	}
	return zipped(t, text)
}

// crowd is an archive of more empty files than a tree may hold.
func crowd(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for i := range maxFiles + 1 {
		if err := tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%d/f%d", i%100, i), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped(t, b.String())
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	if _, err := zw.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// bomb is a small archive of which a lot comes out.
func bomb(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	const size = maxExtracted + 1<<20
	if err := tw.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: size}); err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := tw.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
