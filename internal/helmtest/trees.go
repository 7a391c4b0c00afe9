package helmtest

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	keys "github.com/minio/minio-go/v7/pkg/credentials"
)

// gitKind serves the repository charts.git, whose branch main has the files of the directory. A further directory for the same
// server is a further commit, or with a file `rewritten` the only one, as after a forced push: if that contains pruned,
// earlier commits are removed. Each line of `tags` is a tag of the new commit. With a file `ssh` it is served over SSH as
// well, at ssh://git@NAME.test/charts.git, with NAME.yaml as the Secret. With a file `github` only a GitHub App has access,
// with its API at https://api.NAME.test.
func gitKind(w *World, name, dir string, c *Config) (http.Handler, error) {
	root := w.state(name, dir)
	g, err := NewGit(filepath.Join(root, "charts.git"))
	if err != nil {
		return nil, err
	}
	// As GitHub and GitLab do.
	if _, err := g.Run("config", "uploadpack.allowFilter", "true"); err != nil {
		return nil, err
	}
	if g.commits = w.commits[name]; g.commits > 0 {
		if _, err := g.Run("rm", "-q", "-r", "--ignore-unmatch", "."); err != nil {
			return nil, err
		}
	}
	w.commits[name]++
	var tags []string
	err = eachFile(dir, func(file string, data []byte) error {
		if file == "tags" {
			tags = strings.Fields(string(data))
			return nil
		}
		return g.Write(file, string(data))
	})
	if err != nil {
		return nil, err
	}
	if err := w.serveSSH(name, root, dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "empty")); err == nil {
		return GitHTTP(root, c.Auth.Basic)
	}
	door, err := w.githubDoor(name, dir)
	if err != nil {
		return nil, err
	}
	if err := commit(g, dir); err != nil {
		return nil, err
	}
	if w.SignGit != nil {
		if err := w.SignGit(g, dir); err != nil {
			return nil, err
		}
	}
	for _, tag := range tags {
		if _, err := g.Run("tag", tag); err != nil {
			return nil, err
		}
	}
	h, err := GitHTTP(root, c.Auth.Basic)
	if err != nil {
		return nil, err
	}
	return door(h), nil
}

// commit commits the files of a directory.
func commit(g *Git, dir string) error {
	rewritten, err := os.ReadFile(filepath.Join(dir, "rewritten"))
	if err == nil {
		if _, err := g.Run("checkout", "-q", "--orphan", "rewritten"); err != nil {
			return err
		}
	}
	if _, err := g.Commit("Commit "+filepath.Base(dir), nil); err != nil || rewritten == nil {
		return err
	}
	if _, err := g.Run("branch", "-q", "-M", "main"); err != nil || strings.TrimSpace(string(rewritten)) != "pruned" {
		return err
	}
	if _, err := g.Run("reflog", "expire", "--expire=now", "--all"); err != nil {
		return err
	}
	_, err = g.Run("gc", "-q", "--prune=now")
	return err
}

// githubDoor returns the access control of a repository, which is open if its directory has no file `github`.
func (w *World) githubDoor(name, dir string) (func(http.Handler) http.Handler, error) {
	if _, err := os.Stat(filepath.Join(dir, "github")); err == nil && w.github[name] == nil {
		g, err := NewGitHub()
		if err != nil {
			return nil, err
		}
		host := "api." + name + ".test"
		w.github[name], w.Issued[name] = g, g.Issued
		maps.Copy(w.Files, g.Secrets(name, "https://"+host, w.Kit.CA.Cert))
		if err := w.Serve(name+"-api", &Config{Addr: host + ":443", TLS: true}, g); err != nil {
			return nil, err
		}
	}
	if g := w.github[name]; g != nil {
		return g.Door, nil
	}
	return func(h http.Handler) http.Handler { return h }, nil
}

// serveSSH starts an SSH server for a repository, unless it exists or the directory has no file `ssh`.
func (w *World) serveSSH(name, root, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "ssh")); err != nil || w.ssh[name] != nil {
		return nil
	}
	s, err := ServeGitSSH(w.Network, name+".test:22", root, true)
	if err != nil {
		return err
	}
	other, _, err := NewSSHKey("")
	if err != nil {
		return err
	}
	wrong, err := unknownHost(name + ".test")
	if err != nil {
		return err
	}
	w.ssh[name] = s
	for secret, values := range map[string]map[string][]byte{
		name:                {"identity": s.Identity, "known_hosts": s.KnownHosts},
		name + "-other":     {"identity": other, "known_hosts": s.KnownHosts},
		name + "-host":      {"identity": s.Identity, "known_hosts": wrong},
		name + "-encrypted": {"identity": s.Encrypted, "password": []byte(SSHPassphrase), "known_hosts": s.KnownHosts},
		name + "-locked":    {"identity": s.Encrypted, "known_hosts": s.KnownHosts},
	} {
		w.Files[secret+".yaml"] = Secret(secret, values)
	}
	return nil
}

// bucketKind serves an S3 server whose bucket charts has the files of the directory. A further directory for the same
// server replaces them.
func bucketKind(w *World, name, dir string, _ *Config) (http.Handler, error) {
	ctx := context.Background()
	s3, again := w.buckets[name]
	if !again {
		var err error
		if s3, err = StartS3(); err != nil {
			return nil, err
		}
		w.buckets[name] = s3
	}
	client, err := minio.New(name+".test", &minio.Options{
		Creds:     keys.NewStaticV4(S3AccessKey, S3SecretKey, ""),
		Transport: within{s3.Handler},
	})
	if err != nil {
		return nil, err
	}
	if again {
		for o := range client.ListObjects(ctx, "charts", minio.ListObjectsOptions{Recursive: true}) {
			if err := client.RemoveObject(ctx, "charts", o.Key, minio.RemoveObjectOptions{}); err != nil {
				return nil, err
			}
		}
	} else if err := client.MakeBucket(ctx, "charts", minio.MakeBucketOptions{}); err != nil {
		return nil, err
	}
	return s3.Handler, eachFile(dir, func(file string, data []byte) error {
		_, err := client.PutObject(ctx, "charts", file, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
		return err
	})
}

// within sends requests to a handler without a network.
type within struct{ http.Handler }

func (w within) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	w.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// eachFile visits the files of a directory, except those that configure the server.
func eachFile(dir string, visit func(file string, data []byte) error) error {
	root := os.DirFS(dir)
	return fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || isConfiguration(file) || file == "empty" || file == "ssh" || file == "github" || file == "rewritten" {
			return err
		}
		data, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		return visit(file, data)
	})
}

// state returns a directory for files that must survive a replacement, beside the first directory of the server.
func (w *World) state(name, dir string) string {
	if w.states[name] == "" {
		w.states[name] = filepath.Join(filepath.Dir(dir), ".helmtest", name)
	}
	return w.states[name]
}
