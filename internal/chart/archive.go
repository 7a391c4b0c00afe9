package chart

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

const readBuffer = 32 << 10

// errTrailing is the error for bytes after the last gzip member that are not another member.
var errTrailing = errors.New("archive is followed by other data")

// errOutside reports, in Helm's words, an entry without a base directory.
var errOutside = errors.New("chart illegally contains content outside the base directory")

var windowsDrive = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z]:/`) })

// reading holds the limits that remain for one archive and the archives inside it, and the warnings about them.
type reading struct {
	limits   Limits
	unpacked int64 // bytes of file contents still allowed
	stream   int64 // decompressed bytes still allowed
	yaml     int64 // bytes of YAML still allowed
	entries  int   // entries still allowed
	links    int
	link     string // the first link
	warnings []string
}

func newReading(l Limits) *reading {
	l = l.withDefaults()
	return &reading{limits: l, unpacked: l.Unpacked, stream: l.stream(), yaml: l.yaml(), entries: l.Entries}
}

func (rd *reading) warn(format string, args ...any) {
	if len(rd.warnings) < maxWarnings {
		rd.warnings = append(rd.warnings, fmt.Sprintf(format, args...))
	}
}

// report returns the warnings, with the warning about links last.
func (rd *reading) report() []string {
	switch {
	case rd.links == 1:
		rd.warn("'%s' is a link, which Helm reads as an empty file", printable(rd.link))
	case rd.links > 1:
		rd.warn("'%s' and %d other entries are links, which Helm reads as empty files", printable(rd.link), rd.links-1)
	}
	return rd.warnings
}

// A visitor receives the name of a file relative to the chart, its size and a reader of exactly that many bytes.
type visitor func(name string, size int64, body io.Reader) error

// walk reads a gzip-compressed tar to its very end and visits each file. Several gzip members are one stream, as in RFC
// 1952. Bytes after the tar's end marker, and after the last gzip member, are read, counted and ignored, the latter
// with a warning: Helm does not even look at them.
func (rd *reading) walk(r io.Reader, visit visitor) error {
	in := bufio.NewReaderSize(r, readBuffer)
	z, err := newGunzip(in)
	if err != nil {
		return archiveError(err)
	}
	unzipped := &budget{r: z, left: &rd.stream, err: rd.limits.unpackedError()}
	tr := tar.NewReader(unzipped)
	for {
		header, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return archiveError(err)
		}
		if err := rd.entry(header, tr, visit); err != nil {
			return err
		}
	}
	return rd.drain(in, unzipped)
}

// drain reads the bytes after the tar's end, so that checksums are compared and a copy of the stream is complete.
func (rd *reading) drain(in, unzipped io.Reader) error {
	_, err := io.Copy(io.Discard, unzipped)
	if errors.Is(err, errTrailing) {
		rd.warn("%v", errTrailing)
		_, err = io.Copy(io.Discard, in)
	}
	return archiveError(err)
}

func (rd *reading) entry(header *tar.Header, body io.Reader, visit visitor) error {
	if rd.entries--; rd.entries < 0 {
		return rd.limits.entriesError()
	}
	if len(header.Name) > maxNameLength {
		return fmt.Errorf("archive has an entry with a name of %d bytes, more than %d", len(header.Name), maxNameLength)
	}
	if header.FileInfo().IsDir() {
		return checkDirectory(header.Name)
	}
	switch header.Typeflag {
	case tar.TypeXGlobalHeader, tar.TypeXHeader:
		return nil
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return fmt.Errorf("archive contains a device or pipe '%s'", printable(header.Name))
	}
	name, err := entryName(header.Name)
	if err != nil {
		return err
	}
	if header.Size > rd.limits.File {
		return rd.limits.fileError(name)
	}
	if rd.unpacked -= header.Size; rd.unpacked <= 0 {
		return rd.limits.unpackedError()
	}
	if header.Typeflag == tar.TypeLink || header.Typeflag == tar.TypeSymlink {
		rd.noteLink(name)
	}
	return visit(name, header.Size, body)
}

func (rd *reading) noteLink(name string) {
	if rd.links++; rd.links == 1 {
		rd.link = name
	}
}

// checkDirectory refuses names that no honest tool writes. Helm does not look at directories.
func checkDirectory(name string) error {
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return fmt.Errorf("chart illegally references parent directory: '%s'", printable(name))
		}
	}
	return nil
}

// entryName strips the base directory, regardless of its name, by Helm's rules: a name with a backslash comes from
// Windows and has no slashes.
func entryName(full string) (string, error) {
	delimiter := "/"
	if strings.Contains(full, `\`) {
		delimiter = `\`
	}
	base, rest, _ := strings.Cut(full, delimiter)
	name := strings.ReplaceAll(rest, delimiter, "/")
	// Helm cuts the first element off before it looks, so that "/file" passes there.
	if path.IsAbs(name) || base == "" {
		return "", fmt.Errorf("chart illegally contains absolute paths: '%s'", printable(full))
	}
	name = path.Clean(name)
	switch {
	case name == ".":
		return "", fmt.Errorf("%w: '%s'", errOutside, printable(full))
	case strings.HasPrefix(name, ".."):
		return "", fmt.Errorf("chart illegally references parent directory: '%s'", printable(full))
	case windowsDrive().MatchString(name):
		return "", fmt.Errorf("chart contains illegally named files: '%s'", printable(full))
	case base == chartFile:
		return "", errors.New("chart yaml not in base directory")
	}
	return name, nil
}

// A budget passes on the bytes that are left in an account, which it may share with other budgets.
type budget struct {
	r    io.Reader
	left *int64
	err  error // the error after more bytes than allowed
}

func (b *budget) Read(p []byte) (int, error) {
	if *b.left < 0 {
		return 0, b.err
	}
	// A byte more than allowed distinguishes a stream that ends in time from a stream that is too long.
	if int64(len(p))-1 > *b.left {
		p = p[:*b.left+1]
	}
	n, err := b.r.Read(p)
	*b.left -= int64(n)
	if *b.left < 0 {
		return n - 1, b.err
	}
	return n, err
}

// A gunzip reads gzip members one after the other, and distinguishes other data after them from a broken member.
type gunzip struct {
	in *bufio.Reader
	z  *gzip.Reader
}

func newGunzip(in *bufio.Reader) (*gunzip, error) {
	head, err := in.Peek(512)
	switch {
	case len(head) >= 2 && !isGzip(head):
		return nil, fmt.Errorf("not a gzip archive but %s: %w", http.DetectContentType(head), gzip.ErrHeader)
	case len(head) < 2 && err != io.EOF: //nolint:errorlint // the end itself, as below
		return nil, err
	case len(head) == 0:
		return nil, errors.New("archive is empty")
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gunzip{in: in, z: z}, nil
}

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.z.Read(p)
		if err != io.EOF { //nolint:errorlint // the end itself, not an error that has one for its cause
			return n, err
		}
		if n > 0 {
			return n, nil
		}
		if err := g.next(); err != nil {
			return 0, err
		}
	}
}

func (g *gunzip) next() error {
	head, err := g.in.Peek(2)
	switch {
	case isGzip(head):
	case err != nil && err != io.EOF:
		return err
	case len(head) > 0:
		return errTrailing
	default:
		return io.EOF
	}
	if err := g.z.Reset(g.in); err != nil {
		return err
	}
	g.z.Multistream(false)
	return nil
}

// archiveError explains an error of a decompressor or tar reader. Other errors, a limit's or the source's own, pass.
func archiveError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF: //nolint:errorlint // what a source wraps is its own error
		return fmt.Errorf("archive is truncated: %w", err)
	case errors.Is(err, gzip.ErrChecksum), err == gzip.ErrHeader, errors.Is(err, tar.ErrHeader), //nolint:errorlint // newGunzip wraps it
		errors.Is(err, tar.ErrFieldTooLong), errors.As(err, &corrupt):
		return fmt.Errorf("archive is corrupt: %w", err)
	}
	return err
}

func printable(name string) string {
	const most = 256
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "..."
	}
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}
