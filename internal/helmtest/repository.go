package helmtest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// Repository is a Helm repository: paths to content. Paths are as in a URL, unescaped, with a leading slash.
type Repository map[string][]byte

// ReadRepository reads the charts of a directory (see [ReadPublished]) and makes an index.yaml for them. Other files of the
// directory are served unchanged, also instead of a generated one of the same name; configuration files and chart sources are
// not served.
func ReadRepository(dir string) (Repository, error) {
	list, err := ReadPublished(dir)
	if err != nil {
		return nil, err
	}
	r, err := NewRepository(list)
	if err != nil {
		return nil, err
	}
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if _, err := fs.Stat(root, path.Join(p, "Chart.yaml")); err == nil {
				return fs.SkipDir
			}
			return nil
		case isConfiguration(p):
			return nil
		}
		r["/"+p], err = fs.ReadFile(root, p)
		return err
	})
	if prefix, failed := fs.ReadFile(root, "prefix"); failed == nil && err == nil {
		r = r.below(strings.TrimSpace(string(prefix)))
	}
	return r, err
}

// below returns the repository for a URL with a path.
func (r Repository) below(prefix string) Repository {
	moved := Repository{}
	for p, content := range r {
		moved[path.Join("/", prefix, p)] = content
	}
	return moved
}

// NewRepository makes a repository with a generated index.yaml. Archives are served at their relative URLs. Archives with only
// absolute URLs are served too, under their usual name, for another host to redirect to.
func NewRepository(list []Published) (Repository, error) {
	index, err := Index(list)
	if err != nil {
		return nil, err
	}
	r := Repository{"/index.yaml": index}
	for _, p := range list {
		r["/"+p.Metadata.Name+"-"+p.Metadata.Version+".tgz"] = p.Archive
		for _, u := range p.URLs {
			if file, _, _ := strings.Cut(u, "?"); !strings.Contains(u, "://") {
				r[path.Join("/", file)] = p.Archive
			}
		}
	}
	return r, nil
}

// ServeHTTP answers GET and HEAD.
func (r Repository) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, ok := r[req.URL.Path]
	switch {
	case !ok:
		http.Error(w, "not here", http.StatusNotFound)
	case req.Method != http.MethodGet && req.Method != http.MethodHead:
		http.Error(w, "read only", http.StatusMethodNotAllowed)
	default:
		if kind, tagged := r["/etag"]; tagged && unmodified(w.Header(), req.Header, strings.TrimSpace(string(kind)), body) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", contentType(req.URL.Path))
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if req.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
	}
}

// unmodified adds the version of a file to the answer, as a strong tag, a weak tag, or the time of the last change, and
// reports whether the request has the same version.
func unmodified(answer, request http.Header, kind string, body []byte) bool {
	sum := sha256.Sum256(body)
	if kind == "modified" {
		// Different bytes have different times, all of them long ago.
		at := time.Unix(int64(binary.BigEndian.Uint32(sum[:])/4), 0).UTC().Format(http.TimeFormat)
		answer.Set("Last-Modified", at)
		return request.Get("If-Modified-Since") == at
	}
	tag := fmt.Sprintf("\"%x\"", sum)
	if kind == "weak" {
		tag = "W/" + tag
	}
	answer.Set("ETag", tag)
	return request.Get("If-None-Match") == tag
}

func contentType(file string) string {
	if path.Ext(file) == ".tgz" {
		return "application/gzip"
	}
	return "text/yaml"
}

// entry is an index entry in the field order of `helm repo index`.
type entry struct {
	*chart.Metadata
	URLs    []string  `json:"urls"`
	Created time.Time `json:"created"`
	Removed bool      `json:"removed,omitempty"`
	Digest  string    `json:"digest,omitempty"`
}

// Index returns an index.yaml of the charts, the versions of each in the order of the list.
func Index(list []Published) ([]byte, error) {
	entries := map[string][]entry{}
	for _, p := range list {
		name := p.Metadata.Name
		entries[name] = append(entries[name], entry{&p.Metadata, p.URLs, p.Created, p.Removed, p.Digest})
	}
	return yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": entries, "generated": Created})
}
