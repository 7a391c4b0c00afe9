package chart

import (
	"errors"
	"io"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

var errFound = errors.New("found")

// Metadata reads the metadata of an archive that Check has accepted before, and nothing that comes after it.
func Metadata(r io.Reader, l Limits) (*helmchart.Metadata, error) {
	rd := newReading(l)
	c := &contents{}
	err := rd.walk(rd.bound(r), func(name string, size int64, body io.Reader) error {
		if name != chartFile {
			return nil
		}
		err := c.addOwn(name, size, body, func(name string, size int64, body io.Reader) (*loader.BufferedFile, error) {
			data, err := readFile(size, body)
			return &loader.BufferedFile{Name: name, Data: data}, err
		})
		if err != nil {
			return err
		}
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return c.metadata()
}
