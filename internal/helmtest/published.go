package helmtest

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
)

// Published is one chart version in a repository or registry: its archive, and its entry in the index or manifest.
type Published struct {
	Repository string // path in an OCI registry, with the chart's name
	Metadata   chart.Metadata
	Archive    []byte
	Created    time.Time
	Digest     string   // as in an index; empty without a digest
	URLs       []string // as in an index
	Removed    bool

	Tag        string // in an OCI registry
	MediaType  string // of the chart layer; "-" without a layer
	ConfigType string
	Index      bool // the tag refers to an image index
	Provenance bool // with a provenance layer
	// ProvenanceFile is the content of the provenance layer, which it implies, "" for a few words.
	ProvenanceFile []byte
	SizeLie        int64 // is added to the size of the layers in the manifest
}

// ReadPublished reads the charts of a directory: those in its subdirectories, whose path is the repository in
// a registry, and those in its file `charts`. Each line of the file is
//
//	[repository/]name version [option...]
//
// for the fixture of this name and version, or else for a small chart. Charts are in the order of the file, after those of
// directories. Options:
//
//	created=TIME digest=none|STRING url=URL removed deprecated   content of the index
//	chart=NAME@VERSION                                           the archive contains that chart
//	apiversion=v1
//	entry=PATH fill=PATH:SIZE random=PATH:SIZE entries=N         more entries: a few bytes, SIZE zeros, SIZE
//	symlink=PATH:TARGET hardlink=PATH:TARGET device=PATH         random bytes, N empty files, links, a device
//	tag=TAG layer=MEDIATYPE|- config=MEDIATYPE index provenance sizelie=N   content of the registry
//
// The PATHs are those of the archive, so they start with the chart's name if they are to be inside of it.
func ReadPublished(dir string) ([]Published, error) {
	list, err := publishedDirs(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "charts"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) == "" {
			continue
		}
		p, err := parsePublished(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("charts:%d: %w", i+1, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// publishedDirs packages every directory with a Chart.yaml that is not inside another chart.
func publishedDirs(dir string) ([]Published, error) {
	var list []Published
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if _, err := fs.Stat(root, path.Join(p, "Chart.yaml")); err != nil {
			return nil
		}
		c, err := ReadChart(filepath.Join(dir, p))
		if err != nil {
			return err
		}
		pub, err := c.publish(path.Dir(p))
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		list = append(list, pub)
		return fs.SkipDir
	})
	return list, err
}

// publish returns the result of `helm package` followed by `helm repo index`, or of `helm push`.
func (c Chart) publish(repository string, extra ...Entry) (Published, error) {
	m, err := c.Metadata()
	if err != nil {
		return Published{}, err
	}
	archive, err := c.Package(extra...)
	if err != nil {
		return Published{}, err
	}
	return Published{
		Repository: path.Join(repository, m.Name),
		Metadata:   *m,
		Archive:    archive,
		Created:    Created,
		Digest:     hexDigest(archive),
		URLs:       []string{m.Name + "-" + m.Version + ".tgz"},
		Tag:        strings.ReplaceAll(m.Version, "+", "_"),
	}, nil
}

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// fixtureOrNew returns the chart for a line of a chart list.
func fixtureOrNew(name, version string) Chart {
	if c := Fixture(name); c != nil {
		if m, err := c.Metadata(); err == nil && m.Version == version {
			return c
		}
	}
	return NewChart(name, version)
}

func parsePublished(fields []string) (Published, error) {
	if len(fields) < 2 {
		return Published{}, fmt.Errorf("want a name and a version")
	}
	repository, name := path.Split(fields[0])
	named, archived := fixtureOrNew(name, fields[1]), Chart(nil)
	var extra []Entry
	var index []string
	for _, word := range fields[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch entries, err := parseEntries(key, value); {
		case err != nil:
			return Published{}, fmt.Errorf("%s: %w", word, err)
		case key == "chart":
			n, v, _ := strings.Cut(value, "@")
			archived = fixtureOrNew(n, v)
		case key == "apiversion":
			named["Chart.yaml"] = []byte(strings.Replace(string(named["Chart.yaml"]), "apiVersion: v2", "apiVersion: "+value, 1))
		case key == "deprecated":
			named["Chart.yaml"] = append(named["Chart.yaml"], "deprecated: true\n"...)
		case entries != nil:
			extra = append(extra, entries...)
		default:
			index = append(index, word)
		}
	}
	if archived == nil {
		archived = named
	}
	p, err := named.publish(repository)
	if err != nil {
		return Published{}, err
	}
	if p.Archive, err = archived.Package(extra...); err != nil {
		return Published{}, err
	}
	p.Digest = hexDigest(p.Archive)
	return p, p.describe(index)
}

// parseEntries returns the archive entries of an option, nil for other options.
func parseEntries(key, value string) ([]Entry, error) {
	file, arg, _ := strings.Cut(value, ":")
	e := Entry{Header: tar.Header{Name: file}}
	switch key {
	case "entry":
		e.Name, e.Body = value, []byte("hello\n")
	case "fill", "random":
		size, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, err
		}
		if e.Fill = size; key == "random" {
			e.Fill, e.Body = 0, noise(size)
		}
	case "entries":
		n, err := strconv.Atoi(value)
		if err != nil {
			return nil, err
		}
		list := make([]Entry, n)
		for i := range list {
			list[i].Name = fmt.Sprintf("many/%d", i)
		}
		return list, nil
	case "symlink":
		e.Typeflag, e.Linkname = tar.TypeSymlink, arg
	case "hardlink":
		e.Typeflag, e.Linkname = tar.TypeLink, arg
	case "device":
		e.Typeflag, e.Name = tar.TypeChar, value
	default:
		return nil, nil
	}
	return []Entry{e}, nil
}

// noise returns bytes that do not compress, the same each time.
func noise(size int64) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

// describe applies the options that do not change the archive.
func (p *Published) describe(fields []string) error {
	var urls []string
	for _, word := range fields {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "created":
			t, err := time.Parse(time.RFC3339, value)
			if err != nil {
				return err
			}
			p.Created = t
		case "digest":
			p.Digest = strings.TrimPrefix(value, "none")
		case "url":
			urls = append(urls, value)
		case "removed":
			p.Removed = true
		case "tag":
			p.Tag = value
		case "layer":
			p.MediaType = value
		case "config":
			p.ConfigType = value
		case "index":
			p.Index = true
		case "provenance":
			p.Provenance = true
		case "sizelie":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return err
			}
			p.SizeLie = n
		default:
			return fmt.Errorf("unknown option %q", word)
		}
	}
	if urls != nil {
		p.URLs = urls
	}
	return nil
}
