package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

const minimal = "apiVersion: v2\nname: podinfo\nversion: 6.9.1\n"

// entry is one entry of an archive under test. A zero typeflag means a regular file.
type entry struct {
	name, data string
	typeflag   byte
}

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.data)), Typeflag: e.typeflag}
		switch e.typeflag {
		case 0:
			h.Typeflag = tar.TypeReg
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = "elsewhere"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	return zipped(t, tarball(t, entries...))
}

// filesOf makes entries of a chart in a base directory from name, data pairs.
func filesOf(base string, pairs ...string) []entry {
	var entries []entry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, entry{name: base + "/" + pairs[i], data: pairs[i+1]})
	}
	return entries
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestCheckRefuses(t *testing.T) {
	chartYAML := entry{name: "podinfo/Chart.yaml", data: minimal}
	with := func(e ...entry) []byte { return archive(t, append([]entry{chartYAML}, e...)...) }
	good := with()
	for _, tt := range []struct {
		name   string
		data   []byte
		limits Limits
		want   string
	}{
		{"empty body", nil, Limits{}, "archive is empty"},
		{"one byte", []byte{0x1f}, Limits{}, "archive is truncated: unexpected EOF"},
		{"HTML page", []byte("<!DOCTYPE html><html></html>"), Limits{}, "not a gzip archive but text/html; charset=utf-8: gzip: invalid header"},
		{"plain tar", tarball(t, chartYAML), Limits{}, "not a gzip archive but application/octet-stream: gzip: invalid header"},
		{"gzip of text", zipped(t, []byte(strings.Repeat("no tar ", 200))), Limits{}, "archive is corrupt: archive/tar: invalid tar header"},
		{"truncated in the middle", good[:len(good)/2], Limits{}, "archive is truncated: unexpected EOF"},
		{"truncated in the checksum", good[:len(good)-3], Limits{}, "archive is truncated: unexpected EOF"},
		{"tar without its rest", zipped(t, tarball(t, chartYAML)[:520]), Limits{}, "archive is truncated: unexpected EOF"},
		{"wrong checksum", flip(good, len(good)-5), Limits{}, "archive is corrupt: gzip: invalid checksum"},
		{"corrupt deflate stream", flip(good, 10), Limits{}, "archive is corrupt: "},
		{"second member broken", join(good, good[:15]), Limits{}, "archive is truncated: unexpected EOF"},
		{"case 38: empty.tgz", archive(t), Limits{}, "no 'Chart.yaml' found"},
		{"case 38: no Chart.yaml", archive(t, filesOf("podinfo", "values.yaml", "{}")...), Limits{}, "no 'Chart.yaml' found"},
		{"only a directory called Chart.yaml", archive(t, entry{name: "podinfo/Chart.yaml/", typeflag: tar.TypeDir}), Limits{}, "no 'Chart.yaml' found"},
		{"case 38: archive too large", good, Limits{Archive: int64(len(good)) - 1, Name: "chart.tgz"},
			fmt.Sprintf("size of chart 'chart.tgz' exceeds '%d' bytes limit", len(good)-1)},
		{"archive too large, without a name", good, Limits{Archive: 20}, "size of chart exceeds '20' bytes limit"},
		{"too much after the end", join(good, bytes.Repeat([]byte("x"), 1000)), Limits{Archive: int64(len(good)) + 900}, "size of chart exceeds"},
		{"case 38: requirements.yaml too large", with(filesOf("podinfo", "requirements.yaml", strings.Repeat(" ", 100))...),
			Limits{File: 99}, "size of 'requirements.yaml' exceeds '99' bytes limit"},
		{"file too large", with(filesOf("podinfo", "files/a", strings.Repeat(" ", 100))...), Limits{File: 99}, "size of 'files/a' exceeds '99' bytes limit"},
		{"unpacked too large", with(filesOf("podinfo", "a", strings.Repeat(" ", 80), "b", strings.Repeat(" ", 80))...),
			Limits{Unpacked: 150}, "unpacked size of chart exceeds '150' bytes limit"},
		{"unpacked exactly the limit, as Helm", good, Limits{Unpacked: int64(len(minimal))}, "unpacked size of chart exceeds"},
		{"nested archives count together", with(filesOf("podinfo", "charts/a.tgz", string(archive(t, filesOf("a", "Chart.yaml", minimal, "x", strings.Repeat(" ", 4000))...)))...),
			Limits{Unpacked: 4000}, "subchart 'a.tgz': unpacked size of chart exceeds '4000' bytes limit"},
		{"zeros after the end marker", zipped(t, join(tarball(t, chartYAML), make([]byte, 1<<20))), Limits{Unpacked: 1 << 18, Entries: 10}, "unpacked size of chart exceeds"},
		{"too many entries", archive(t, many(12)...), Limits{Entries: 10}, "archive has more than 10 entries"},
		{"too many directories", archive(t, directories(12)...), Limits{Entries: 10}, "archive has more than 10 entries"},
		{"YAML without end", with(filesOf("podinfo", "values.yaml", strings.Repeat(" ", 100), "charts/a/values.yaml", strings.Repeat(" ", 100),
			"charts/b/values.yaml", strings.Repeat(" ", 100), "charts/c/values.yaml", strings.Repeat(" ", 100))...), Limits{File: 100}, "metadata and values of chart exceed '400' bytes limit"},
		{"long name", with(entry{name: "podinfo/" + strings.Repeat("a", 5000)}), Limits{}, "archive has an entry with a name of 5008 bytes, more than 4096"},
		{"character device", with(entry{name: "podinfo/null", typeflag: tar.TypeChar}), Limits{}, "archive contains a device or pipe 'podinfo/null'"},
		{"block device", with(entry{name: "podinfo/sda", typeflag: tar.TypeBlock}), Limits{}, "archive contains a device or pipe 'podinfo/sda'"},
		{"pipe", with(entry{name: "podinfo/pipe", typeflag: tar.TypeFifo}), Limits{}, "archive contains a device or pipe 'podinfo/pipe'"},
		{"absolute", with(entry{name: "//etc/passwd"}), Limits{}, "chart illegally contains absolute paths: '//etc/passwd'"},
		// Helm lets this one pass: it cuts off the first element before it looks.
		{"absolute, one element", with(entry{name: "/passwd"}), Limits{}, "chart illegally contains absolute paths: '/passwd'"},
		{"absolute, Windows", with(entry{name: `\\server\share`}), Limits{}, `chart illegally contains absolute paths: '\\\\server\\share'`},
		{"climbing", with(entry{name: "podinfo/../../x"}), Limits{}, "chart illegally references parent directory: 'podinfo/../../x'"},
		{"climbing inside", with(entry{name: "podinfo/a/../../x"}), Limits{}, "chart illegally references parent directory"},
		{"climbing, Windows", with(entry{name: `podinfo\..\..\x`}), Limits{}, "chart illegally references parent directory"},
		{"climbing directory", with(entry{name: "podinfo/../../x/", typeflag: tar.TypeDir}), Limits{}, "chart illegally references parent directory: 'podinfo/../../x/'"},
		{"name beginning with two dots, as Helm", with(entry{name: "podinfo/..x"}), Limits{}, "chart illegally references parent directory"},
		{"drive", with(entry{name: `podinfo/./c://foo`}), Limits{}, "chart contains illegally named files: 'podinfo/./c://foo'"},
		{"drive, Windows", with(entry{name: `podinfo\.\c:\\foo`}), Limits{}, "chart contains illegally named files"},
		{"no base directory", archive(t, entry{name: "values.yaml"}), Limits{}, "chart illegally contains content outside the base directory: 'values.yaml'"},
		{"Chart.yaml in no base directory", archive(t, entry{name: "Chart.yaml", data: minimal}), Limits{}, "chart illegally contains content outside the base directory: 'Chart.yaml'"},
		{"base directory called Chart.yaml", with(entry{name: "Chart.yaml/a"}), Limits{}, "chart yaml not in base directory"},
		{"two charts", with(filesOf("other", "Chart.yaml", minimal)...), Limits{}, "archive contains 'Chart.yaml' twice"},
		{"Chart.yaml is no YAML", archive(t, filesOf("a", "Chart.yaml", "\t")...), Limits{}, "cannot load 'Chart.yaml': "},
		{"Chart.yaml is a list", archive(t, filesOf("a", "Chart.yaml", "[]")...), Limits{}, "cannot load 'Chart.yaml': "},
		{"Chart.yaml is empty", archive(t, filesOf("a", "Chart.yaml", "")...), Limits{}, "validation: chart.metadata.name is required"},
		{"no version", archive(t, filesOf("a", "Chart.yaml", "name: a\n")...), Limits{}, "validation: chart.metadata.version is required"},
		{"version is no semver", archive(t, filesOf("a", "Chart.yaml", "name: a\nversion: one\n")...), Limits{}, `validation: chart.metadata.version "one" is invalid`},
		{"name with a slash", archive(t, filesOf("a", "Chart.yaml", "name: ../a\nversion: 1.0.0\n")...), Limits{}, `validation: chart.metadata.name "../a" is invalid`},
		{"null maintainer", archive(t, filesOf("a", "Chart.yaml", minimal+"maintainers: [null]\n")...), Limits{}, "validation: maintainers must not contain empty or null nodes"},
		{"null dependency", archive(t, filesOf("a", "Chart.yaml", minimal+"dependencies: [null]\n")...), Limits{}, "validation: dependencies must not contain empty or null nodes"},
		{"values.yaml is a list", with(filesOf("podinfo", "values.yaml", "[]")...), Limits{}, "cannot load 'values.yaml': "},
		{"Chart.lock is a list", with(filesOf("podinfo", "Chart.lock", "[]")...), Limits{}, "cannot load 'Chart.lock': "},
		{"requirements.yaml is a list", with(filesOf("podinfo", "requirements.yaml", "[]")...), Limits{}, "cannot load 'requirements.yaml': "},
		{"requirements.lock is a list", with(filesOf("podinfo", "requirements.lock", "[]")...), Limits{}, "cannot load 'requirements.lock': "},
		{"subchart without Chart.yaml", with(filesOf("podinfo", "charts/a/values.yaml", "")...), Limits{}, "subchart 'a': no 'Chart.yaml' found"},
		{"subchart's values.yaml is a list", with(filesOf("podinfo", "charts/a/Chart.yaml", minimal, "charts/a/charts/b/values.yaml", "[]")...), Limits{}, "subchart 'a': subchart 'b': cannot load 'values.yaml': "},
		{"file beside subcharts, as Helm", with(filesOf("podinfo", "charts/README.md", "")...), Limits{}, "subchart 'README.md': no 'Chart.yaml' found"},
		{"subchart archive is no archive", with(filesOf("podinfo", "charts/a.tgz", "aa")...), Limits{}, "subchart 'a.tgz': not a gzip archive but text/plain"},
		{"subchart archive is a directory", with(filesOf("podinfo", "charts/a.tgz/Chart.yaml", minimal)...), Limits{}, "subchart archive 'a.tgz' is a directory"},
		{"subchart archives without end", nested(t, 20), Limits{}, "subchart archives are nested deeper than 16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, warnings, err := Check(bytes.NewReader(tt.data), tt.limits)
			if err == nil {
				t.Fatalf("accepted as %s %s, warnings %q", m.Name, m.Version, warnings)
			}
			if got := err.Error(); !strings.HasPrefix(got, tt.want) && !strings.Contains(got, ": "+tt.want) {
				t.Errorf("got error %q, want %q", got, tt.want)
			}
			if _, err := Load(bytes.NewReader(tt.data), tt.limits); err == nil && !strings.HasPrefix(tt.name, "YAML without end") {
				t.Error("Load accepts what Check refuses")
			}
		})
	}
}

func flip(data []byte, at int) []byte {
	data = bytes.Clone(data)
	data[at] ^= 0xff
	return data
}

func many(n int) []entry {
	entries := []entry{{name: "a/Chart.yaml", data: minimal}}
	for i := range n {
		entries = append(entries, entry{name: fmt.Sprintf("a/f%d", i)})
	}
	return entries
}

func directories(n int) []entry {
	entries := []entry{{name: "a/Chart.yaml", data: minimal}}
	for i := range n {
		entries = append(entries, entry{name: fmt.Sprintf("a/d%d/", i), typeflag: tar.TypeDir})
	}
	return entries
}

func nested(t *testing.T, depth int) []byte {
	inner := archive(t, filesOf("a", "Chart.yaml", minimal)...)
	for range depth {
		inner = archive(t, filesOf("a", "Chart.yaml", minimal, "charts/a.tgz", string(inner))...)
	}
	return inner
}

// A million entries and a bomb, as streams that never exist as a whole: refused long before their end.
func TestCheckRefusesEarly(t *testing.T) {
	for name, write := range map[string]func(w *tar.Writer) error{
		"a million entries": func(w *tar.Writer) error {
			for i := range 1_000_000 {
				if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("a/%d", i)}); err != nil {
					return err
				}
			}
			return nil
		},
		"decompression bomb": func(w *tar.Writer) error {
			zeros := make([]byte, 4<<20)
			for i := range 10_000 {
				if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("a/%d", i), Size: int64(len(zeros))}); err != nil {
					return err
				}
				if _, err := w.Write(zeros); err != nil {
					return err
				}
			}
			return nil
		},
		"bomb in a directory entry": func(w *tar.Writer) error {
			// An entry that Helm takes for a directory by its mode, and skips with all its contents.
			if err := w.WriteHeader(&tar.Header{Name: "a/d", Mode: 0o40755, Size: 1 << 40, Format: tar.FormatGNU}); err != nil {
				return err
			}
			zeros := make([]byte, 1<<20)
			for {
				if _, err := w.Write(zeros); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			done := make(chan error)
			go func() {
				z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
				err := write(tar.NewWriter(z))
				w.CloseWithError(err)
				done <- err
			}()
			_, _, err := Check(r, Limits{Unpacked: 16 << 20, Entries: 10_000})
			r.Close()
			if err == nil {
				t.Fatal("accepted")
			}
			if werr := <-done; !errors.Is(werr, io.ErrClosedPipe) {
				t.Errorf("read to the end: %v, %v", err, werr)
			}
		})
	}
}

func TestCheckAccepts(t *testing.T) {
	sub := func(name string) string {
		return string(archive(t, filesOf("x", "Chart.yaml", "apiVersion: v2\nname: "+name+"\nversion: 1.0.0\n")...))
	}
	files := func(pairs ...string) []entry {
		return append(filesOf("podinfo", "Chart.yaml", minimal), filesOf("podinfo", pairs...)...)
	}
	good := archive(t, files()...)
	half := tarball(t, files("values.yaml", "a: b\n", "templates/a.yaml", "x")...)
	for _, tt := range []struct {
		name     string
		data     []byte
		limits   Limits
		warnings []string
	}{
		{name: "minimal", data: good},
		{name: "exactly the limits", data: good, limits: Limits{Archive: int64(len(good)), File: int64(len(minimal)), Unpacked: int64(len(minimal)) + 1, Entries: 1}},
		{name: "everything", data: archive(t, files("values.yaml", "a: 1", "Chart.lock", "digest: x", "values.schema.json", "{}", "templates/a.yaml", "{{", "charts/b.tgz", sub("b"),
			"charts/c/Chart.yaml", minimal, "charts/c/charts/d.tgz", sub("d"), "charts/_skip", "", "charts/.skip/x", "", "charts/b.tgz.prov", "sig", "README.md", "\xef\xbb\xbfhi")...)},
		{name: "byte order mark", data: archive(t, filesOf("a", "Chart.yaml", "\xef\xbb\xbf"+minimal)...)},
		{name: "Windows names", data: archive(t, entry{name: `podinfo\Chart.yaml`, data: minimal}, entry{name: `podinfo\templates\a.yaml`})},
		{name: "two base directories", data: archive(t, append(files(), filesOf("other", "values.yaml", "{}")...)...)},
		{name: "directories", data: archive(t, append([]entry{{name: "podinfo/", typeflag: tar.TypeDir}}, files()...)...)},
		{name: "several gzip members", data: join(zipped(t, half[:700]), zipped(t, half[700:]))},
		{name: "empty gzip member at the end", data: join(good, zipped(t, nil))},
		{name: "no end marker", data: zipped(t, half[:len(half)-1024])},
		{name: "data after the end marker", data: zipped(t, join(half, []byte("anything")))},
		{name: "data after the archive", data: join(good, []byte("\n")), warnings: []string{"archive is followed by other data"}},
		{name: "link", data: archive(t, append(files(), entry{name: "podinfo/l\n", typeflag: tar.TypeSymlink})...),
			warnings: []string{`'l\n' is a link, which Helm reads as an empty file`}},
		{name: "links", data: archive(t, append(files(), entry{name: "podinfo/l", typeflag: tar.TypeSymlink}, entry{name: "podinfo/m", typeflag: tar.TypeLink})...),
			warnings: []string{"'l' and 1 other entries are links, which Helm reads as empty files"}},
		{name: "apiVersion of the future", data: archive(t, filesOf("a", "Chart.yaml", "apiVersion: v3\nname: podinfo\nversion: 6.9.1\n")...),
			warnings: []string{"chart has apiVersion 'v3', which Helm 3 does not know"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var copied bytes.Buffer
			m, warnings, err := Check(io.TeeReader(bytes.NewReader(tt.data), &copied), tt.limits)
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != "podinfo" || m.Version != "6.9.1" {
				t.Errorf("got %s %s", m.Name, m.Version)
			}
			if fmt.Sprint(warnings) != fmt.Sprint(tt.warnings) {
				t.Errorf("got warnings %q, want %q", warnings, tt.warnings)
			}
			if !bytes.Equal(copied.Bytes(), tt.data) {
				t.Errorf("read %d bytes of %d", copied.Len(), len(tt.data))
			}
			if _, err := loader.LoadArchive(bytes.NewReader(tt.data)); err != nil {
				t.Errorf("Helm refuses it: %v", err)
			}
		})
	}
}

func TestCheckErrorTypes(t *testing.T) {
	_, _, err := Check(bytes.NewReader(archive(t, filesOf("a", "Chart.yaml", "")...)), Limits{})
	var invalid helmchart.ValidationError
	if !errors.As(err, &invalid) {
		t.Errorf("no ValidationError: %v", err)
	}
	broken := errors.New("connection reset")
	data := archive(t, filesOf("a", "Chart.yaml", minimal)...)
	for n := range len(data) {
		r := io.MultiReader(bytes.NewReader(data[:n]), failing{broken})
		if _, _, err := Check(r, Limits{}); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: error of the source is lost: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
