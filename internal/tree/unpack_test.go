package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	godigest "github.com/opencontainers/go-digest"
)

type entry struct {
	tar.Header
	content string
}

func regularFile(name, content string) entry {
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}, content}
}

func special(flag byte, name string) entry {
	return entry{tar.Header{Typeflag: flag, Name: name, Linkname: "target", Mode: 0o644}, ""}
}

func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		e.Size = int64(len(e.content))
		if err := tw.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpack(t *testing.T) {
	exe := regularFile("bin/run", "#!")
	exe.Mode = 0o4755
	global := entry{tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
		PAXRecords: map[string]string{"comment": "a commit"}}, ""}
	long := strings.Repeat("long-name/", 30) + "file"
	for _, tt := range []struct {
		name    string
		entries []entry
		want    map[string]string
	}{
		{"nothing", nil, map[string]string{}},
		{"files", []entry{regularFile("a", "1"), regularFile("b/c", "2")}, map[string]string{"a": "1", "b/c": "2"}},
		{"as archived", []entry{special(tar.TypeDir, "."), special(tar.TypeDir, "b"), regularFile("b/c", "2")},
			map[string]string{"b/c": "2"}},
		{"with dots", []entry{special(tar.TypeDir, "./"), special(tar.TypeDir, "./b/"), regularFile("./b/./c", "2")},
			map[string]string{"b/c": "2"}},
		{"executable", []entry{exe}, map[string]string{"bin/run*": "#!"}},
		{"empty directory", []entry{special(tar.TypeDir, "a/b/")}, map[string]string{"a/b/": ""}},
		{"from git archive", []entry{global, regularFile("a", "1")}, map[string]string{"a": "1"}},
		{"the last one counts", []entry{regularFile("a", "first and longer"), regularFile("a", "last")}, map[string]string{"a": "last"}},
		{"long name", []entry{regularFile(long, "1")}, map[string]string{long: "1"}},
		{"dots in names", []entry{regularFile("..a/b..", "1"), regularFile("...", "2")}, map[string]string{"..a/b..": "1", "...": "2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Unpack(t.Context(), bytes.NewReader(pack(t, tt.entries...)), rootOf(t, dir), Limits{}); err != nil {
				t.Fatal(err)
			}
			if got := contents(t, dir); !maps.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnpackRefuses(t *testing.T) {
	device := special(tar.TypeChar, "null")
	device.Devmajor, device.Devminor = 1, 3
	for _, tt := range []struct {
		name    string
		entries []entry
		want    string
	}{
		{"climbing", []entry{regularFile("../a", "1")}, `tar contained invalid name error "../a"`},
		{"climbing later", []entry{regularFile("a/../../b", "1")}, `tar contained invalid name error "a/../../b"`},
		{"climbing and coming back", []entry{regularFile("a/../b", "1")}, `tar contained invalid name error "a/../b"`},
		{"climbing at the end", []entry{special(tar.TypeDir, "a/..")}, `tar contained invalid name error "a/.."`},
		{"only dots", []entry{special(tar.TypeDir, "..")}, `tar contained invalid name error ".."`},
		{"absolute", []entry{regularFile("/etc/passwd", "1")}, `tar contained invalid name error "/etc/passwd"`},
		{"backslash", []entry{regularFile(`..\a`, "1")}, `tar contained invalid name error "..\\a"`},
		{"control character", []entry{regularFile("a\x1b[2Jb", "1")}, `tar contained invalid name error "a\x1b[2Jb"`},
		{"line break", []entry{regularFile("a\nb", "1")}, `tar contained invalid name error "a\nb"`},
		{"no name", []entry{regularFile("", "1")}, `tar contained invalid name error ""`},
		{"symlink", []entry{special(tar.TypeSymlink, "link")},
			"tar file entry link is a symlink, which is not allowed in this context"},
		{"hard link", []entry{special(tar.TypeLink, "link")},
			"tar file entry link is a hard link, which is not allowed in this context"},
		{"device", []entry{device}, "tar file entry null contained unsupported file type Dcrw-r--r--"},
		{"pipe", []entry{special(tar.TypeFifo, "pipe")}, "tar file entry pipe contained unsupported file type prw-r--r--"},
		{"file, then directory", []entry{regularFile("a", "1"), special(tar.TypeDir, "a/")}, "tar has a as a file and as a directory"},
		{"directory, then file", []entry{special(tar.TypeDir, "a/"), regularFile("a", "1")}, "tar has a as a file and as a directory"},
		{"file above a file", []entry{regularFile("a", "1"), regularFile("a/b", "1")}, "tar has a as a file and as a directory"},
		{"the root as a file", []entry{regularFile("./.", "1")}, "tar has . as a file and as a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			plant(t, top, map[string]string{"in/": "", "target": "do not touch"})
			root := rootOf(t, filepath.Join(top, "in"))
			err := Unpack(t.Context(), bytes.NewReader(pack(t, tt.entries...)), root, Limits{})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			for name := range contents(t, top) {
				if name != "target" && !strings.HasPrefix(name, "in/") {
					t.Errorf("%s was written", name)
				}
			}
		})
	}
}

func TestUnpackDamaged(t *testing.T) {
	whole := pack(t, regularFile("a", strings.Repeat("content ", 1000)))
	broken := bytes.Clone(whole)
	broken[len(broken)-8] ^= 1 // in the checksum
	var noTar bytes.Buffer
	zw := gzip.NewWriter(&noTar)
	if _, err := zw.Write(bytes.Repeat([]byte("no tar "), 200)); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		data []byte
		want string // "" if there is no error
	}{
		{"whole", whole, ""},
		{"padding behind", append(bytes.Clone(whole), make([]byte, 1000)...), ""},
		// §12 case 56: the text after "artifact untar error: ".
		{"case 56: YAML", []byte("apiVersion: v1\nentries: {}\n"), "requires gzip-compressed body: gzip: invalid header"},
		{"case 56: empty", nil, "requires gzip-compressed body: EOF"},
		{"no tar", noTar.Bytes(), "tar error: archive/tar: invalid tar header"},
		{"cut off", whole[:len(whole)-20], "error writing to a: unexpected EOF"},
		{"cut off in the checksum", whole[:len(whole)-2], "tar error: unexpected EOF"},
		{"wrong checksum", broken, "tar error: gzip: invalid checksum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Unpack(t.Context(), bytes.NewReader(tt.data), rootOf(t, t.TempDir()), Limits{})
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestUnpackLimits(t *testing.T) {
	bomb := pack(t, regularFile("bomb", strings.Repeat("\x00", 1<<20)))
	many := pack(t, regularFile("a/b/c", ""), regularFile("a/b/d", ""), special(tar.TypeDir, "a"))
	tooDeep := pack(t, regularFile(deep(maxDepth+1), ""))
	for _, tt := range []struct {
		name   string
		data   []byte
		limits Limits
		want   string
	}{
		{"a file", bomb, Limits{File: 1<<20 - 1}, "tar file entry bomb has 1048576 bytes, more than 1048575"},
		{"a file that fits", bomb, Limits{File: 1 << 20}, ""},
		{"everything", bomb, Limits{Total: 1<<20 + 1024}, "archive has more than 1049600 bytes without compression"},
		{"everything fits", bomb, Limits{Total: 1<<20 + 512 + 1024}, ""},
		{"behind the archive", append(bytes.Clone(bomb), bomb...), Limits{Total: 1<<20 + 512 + 1024},
			"bytes without compression"},
		{"entries", many, Limits{Entries: 2}, "archive has more than 2 files and directories"},
		{"entries fit", many, Limits{Entries: 3}, ""},
		{"directories", pack(t, regularFile("a/b/c/d", "")), Limits{Entries: 2}, "archive has more than 2 files and directories"},
		{"depth", tooDeep, Limits{}, "nested more than 128 directories deep"},
		{"length", pack(t, regularFile(strings.Repeat("x", maxName+1), "")), Limits{}, "tar contained a name of 4097 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Unpack(t.Context(), bytes.NewReader(tt.data), rootOf(t, t.TempDir()), tt.limits)
			if tt.want != "" {
				wantLimit(t, err, tt.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A sparse file states a larger size than the archive has.
func TestUnpackSparse(t *testing.T) {
	err := Unpack(t.Context(), bytes.NewReader(sparse(t, 1<<40)), rootOf(t, t.TempDir()), Limits{File: 1 << 50})
	wantLimit(t, err, "bytes without compression")
	dir := t.TempDir()
	if err := Unpack(t.Context(), bytes.NewReader(sparse(t, 1<<20)), rootOf(t, dir), Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, dir); len(got["sparse"]) != 1<<20 {
		t.Errorf("unpacked %d bytes", len(got["sparse"]))
	}
}

// sparse makes an archive, in the format that GNU tar calls 0.1, of a file that is one hole.
func sparse(t testing.TB, size int64) []byte {
	t.Helper()
	digits := strconv.FormatInt(size, 10)
	e := regularFile("sparse", "")
	e.Format = tar.FormatPAX
	// The writer does not let such records pass, so that they are put in by name.
	e.PAXRecords = map[string]string{
		"XNU.sparse.major": "0", "XNU.sparse.minor": "1", "XNU.sparse.name": "sparse",
		"XNU.sparse.numblocks": "1", "XNU.sparse.map": digits + ",0", "XNU.sparse.size": digits,
	}
	zr, err := gzip.NewReader(bytes.NewReader(pack(t, e)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	plain = bytes.ReplaceAll(plain, []byte("XNU.sparse"), []byte("GNU.sparse"))
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	if _, err := zw.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A link that is already below the root does not lead out of it.
func TestUnpackIntoPlanted(t *testing.T) {
	top := t.TempDir()
	plant(t, top, map[string]string{"target/": "", "in/link": "-> ../target", "in/file": "-> ../target/file"})
	for _, e := range []entry{regularFile("link/a", "1"), regularFile("file", "1"), special(tar.TypeDir, "link/a/")} {
		if err := Unpack(t.Context(), bytes.NewReader(pack(t, e)), rootOf(t, filepath.Join(top, "in")), Limits{}); err == nil {
			t.Errorf("%s is unpacked", e.Name)
		}
	}
	if left, err := os.ReadDir(filepath.Join(top, "target")); len(left) > 0 || err != nil {
		t.Errorf("in the target: %v, %v", left, err)
	}
}

// For any archive: no file is written outside the root, no limit is exceeded, and the unpacked files are the same
// after they were archived and unpacked again.
func FuzzUnpack(f *testing.F) {
	for _, entries := range [][]entry{
		nil,
		{regularFile("a", "1"), regularFile("b/c", "2")},
		{special(tar.TypeDir, "./"), regularFile("./a", "1"), regularFile("a", "2")},
		{regularFile("../a", "1")},
		{regularFile("/a", "1")},
		{regularFile(`a\b`, "1")},
		{special(tar.TypeSymlink, "a"), regularFile("a/b", "1")},
		{special(tar.TypeLink, "a")},
		{special(tar.TypeFifo, "a")},
		{regularFile("a", strings.Repeat("x", 5000))},
		{regularFile(deep(20), "")},
	} {
		f.Add(pack(f, entries...))
	}
	f.Add(sparse(f, 1<<40))
	f.Add(sparse(f, 100))
	f.Add([]byte("apiVersion: v1\n"))
	limits := Limits{Entries: 50, File: 4000, Total: 1 << 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
			data = zipped(data) // so that the fuzzer can do without compression
		}
		top := t.TempDir()
		plant(t, top, map[string]string{"in/": "", "target": "do not touch"})
		root := rootOf(t, filepath.Join(top, "in"))
		err := Unpack(t.Context(), bytes.NewReader(data), root, limits)
		checkUnpacked(t, top, limits)
		if err != nil {
			return
		}
		again := rootOf(t, t.TempDir())
		if err := Unpack(t.Context(), bytes.NewReader(archive(t, root, Options{})), again, Limits{}); err != nil {
			t.Fatal(err)
		}
		one, oneErr := Sum(t.Context(), godigest.SHA256, root, Options{})
		two, twoErr := Sum(t.Context(), godigest.SHA256, again, Options{})
		if one != two || oneErr != nil || twoErr != nil {
			t.Errorf("%s and %s, %v, %v", one, two, oneErr, twoErr)
		}
	})
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	_, _ = zw.Write(data)
	_ = zw.Close()
	return b.Bytes()
}

func checkUnpacked(t *testing.T, top string, l Limits) {
	t.Helper()
	total := 0
	files := contents(t, top)
	for name, content := range files {
		if name == "target" {
			continue
		}
		if !strings.HasPrefix(name, "in/") || strings.ContainsAny(name, "\\\n\x1b") {
			t.Errorf("%q was written", name)
		}
		if int64(len(content)) > l.File {
			t.Errorf("%q has %d bytes", name, len(content))
		}
		total += len(content)
	}
	if files["target"] != "do not touch" || int64(total) > l.Total || len(files) > l.Entries+2 {
		t.Errorf("target %q, %d files with %d bytes", files["target"], len(files), total)
	}
}

// Links that Flux leaves out of layers are left out, and no file can be written through them.
func TestUnpackFiles(t *testing.T) {
	link := func(name, target string) entry {
		e := special(tar.TypeSymlink, name)
		e.Linkname = target
		return e
	}
	top := t.TempDir()
	plant(t, top, map[string]string{"in/": "", "target": "do not touch"})
	root := rootOf(t, filepath.Join(top, "in"))
	data := pack(t, link("passwd", "/etc/passwd"), link("up", ".."), regularFile("up/target", "written"), link("a/b", "../../target"), regularFile("c", "1"))
	if err := UnpackFiles(t.Context(), bytes.NewReader(data), root, Limits{}); err != nil {
		t.Fatal(err)
	}
	got := contents(t, top)
	if got["target"] != "do not touch" || got["in/up/target"] != "written" || got["in/c"] != "1" || len(got) != 3 {
		t.Errorf("got %q", got)
	}
	for _, e := range []entry{link("../a", "x"), special(tar.TypeLink, "hard"), special(tar.TypeFifo, "pipe")} {
		if err := UnpackFiles(t.Context(), bytes.NewReader(pack(t, e)), rootOf(t, t.TempDir()), Limits{}); err == nil {
			t.Errorf("%s is unpacked", e.Name)
		}
	}
}
