package helmtest

import (
	"net/http"
	"os"
	"path/filepath"
)

// The keys of the S3 server.
const (
	S3AccessKey = "S3ACCESSKEY"
	S3SecretKey = "s3-secret-key-of-the-tests"
)

// S3 is versitygw, a real S3 server, which keeps its buckets as directories.
type S3 struct {
	*program
	Handler http.Handler // to be served at a name of a [Network]
}

// StartS3 starts a server. The first call takes minutes, to build it; later runs find it in the user's cache.
func StartS3() (*S3, error) {
	p, h, err := startProgram("s3server", "github.com/versity/versitygw/cmd/versitygw", func(addr, dir string) ([]string, error) {
		meta, buckets := filepath.Join(dir, "meta"), filepath.Join(dir, "buckets")
		for _, sub := range []string{meta, buckets} {
			if err := os.Mkdir(sub, 0o755); err != nil {
				return nil, err
			}
		}
		return []string{
			"--access", S3AccessKey, "--secret", S3SecretKey, "--port", addr, "--region", "us-east-1", "--quiet",
			"posix", "--sidecar", meta, buckets,
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return &S3{p, h}, nil
}
