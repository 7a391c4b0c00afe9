package chart

import (
	"cmp"
	"fmt"
	"math"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// The defaults of source-controller's flags, and two bounds that it lacks.
const (
	// DefaultArchive is source-controller's --helm-chart-max-size.
	DefaultArchive = 10 << 20
	// DefaultFile is source-controller's --helm-chart-file-max-size, and the largest file that Helm loads.
	DefaultFile = 5 << 20
	// DefaultUnpacked is the number of bytes that Helm unpacks of one archive.
	DefaultUnpacked = 100 << 20
	// DefaultEntries is well above the largest charts we know of (about 3,000 files with all subcharts). It exists to
	// stop archives made of headers only.
	DefaultEntries = 1 << 16
)

const (
	// maxNameLength is the longest entry name, as PATH_MAX on Linux.
	maxNameLength = 4096
	// headerBytes bounds one entry in the tar stream beside its contents: header, padding, extended header.
	headerBytes = 2 << 10
	// maxNesting bounds subchart archives in subchart archives. Each open archive costs about 80 KiB of buffers.
	maxNesting = 16
	// yamlFiles is how many files of the largest size are parsed while an archive is checked: most of the time and
	// memory is spent on parsing.
	yamlFiles = 4
	// maxWarnings is the limit of warnings about one archive.
	maxWarnings = 20
)

// Limits bounds the reading of one chart. A zero field is its default.
type Limits struct {
	// Archive is the size of the archive file, in bytes.
	Archive int64
	// File is the unpacked size of each file.
	File int64
	// Unpacked is the size of all files together, including files in archives of subcharts. As in Helm, a chart of
	// exactly this size is too large.
	Unpacked int64
	// Entries is the number of entries, including entries in archives of subcharts.
	Entries int
	// Name is the base name of the archive, for messages. It may be empty.
	Name string
}

// Named returns the limits for the archive of this name.
func (l Limits) Named(name string) Limits {
	l.Name = name
	return l
}

func (l Limits) withDefaults() Limits {
	l.Archive = cmp.Or(max(l.Archive, 0), DefaultArchive)
	l.File = cmp.Or(max(l.File, 0), DefaultFile)
	l.Unpacked = cmp.Or(max(l.Unpacked, 0), DefaultUnpacked)
	l.Entries = cmp.Or(max(l.Entries, 0), DefaultEntries)
	return l
}

// stream returns the number of bytes that the archive may decompress to, headers included.
func (l Limits) stream() int64 {
	if l.Unpacked > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return l.Unpacked + min(int64(l.Entries), math.MaxInt64/4/headerBytes)*headerBytes
}

func (l Limits) yaml() int64 {
	if l.File > math.MaxInt64/yamlFiles {
		return math.MaxInt64
	}
	return l.File * yamlFiles
}

func (l Limits) archiveError() error {
	if l.Name == "" {
		return limitError("size of chart exceeds '%d' bytes limit", l.Archive)
	}
	return limitError("size of chart '%s' exceeds '%d' bytes limit", l.Name, l.Archive)
}

func (l Limits) fileError(name string) error {
	return limitError("size of '%s' exceeds '%d' bytes limit", printable(name), l.File)
}

func (l Limits) unpackedError() error {
	return limitError("unpacked size of chart exceeds '%d' bytes limit", l.Unpacked)
}

func (l Limits) entriesError() error {
	return limitError("archive has more than %d entries", l.Entries)
}

// limitError reports that a chart exceeds a limit. It has a code because options can raise limits.
func limitError(format string, args ...any) error {
	return &finding.Problem{Code: finding.TooLarge, Text: fmt.Sprintf(format, args...)}
}
