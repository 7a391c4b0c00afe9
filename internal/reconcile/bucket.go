package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	godigest "github.com/opencontainers/go-digest"

	"github.com/helmsrc/helmsrc/internal/credential"
	"github.com/helmsrc/helmsrc/internal/fetch"
	"github.com/helmsrc/helmsrc/internal/fetch/bucket"
	"github.com/helmsrc/helmsrc/internal/fetch/git"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type bucketReconciliation struct {
	treeReconciliation
	obj *sourcev1.Bucket
}

// perform downloads the objects of the bucket: the revision is computed from them.
func (p *bucketReconciliation) perform(ctx context.Context) error {
	obj := p.obj
	t, err := p.bucketTree(ctx, obj)
	if err != nil {
		return err
	}
	p.took(t)
	kept := &fetched{Tree: t, fingerprint: bucketFingerprint(obj, t.Revision), stored: &status.Observation{Reason: status.Succeeded, Message: "stored artifact: revision '" + t.Revision + "'"}}
	if !t.Unchanged {
		kept.announce = fmt.Sprintf("stored artifact with %d fetched files from '%s' bucket", t.Files, obj.Spec.BucketName)
	}
	if _, ok := p.r.o.Directories[p.key]; ok {
		if kept.filter, err = directoryFilter(t, obj); err != nil {
			return status.BucketOperationFailed.Wrap(err)
		}
	}
	if err := p.take(ctx, kept); err != nil || p.choosing() {
		return err
	}
	obj.Status.ObservedIgnore = obj.Spec.Ignore
	return nil
}

// bucketTree downloads the bucket, or opens the directory that replaces it.
// Files that spec.ignore and .sourceignore match are left out.
func (p *bucketReconciliation) bucketTree(ctx context.Context, obj *sourcev1.Bucket) (*fetch.Tree, error) {
	if dir, ok := p.r.o.Directories[p.key]; ok {
		t, err := p.openLocalTree(ctx, dir.Path, git.WorktreeOptions{Plain: true})
		return t, status.BucketOperationFailed.Wrap(err)
	}
	if p.settled() {
		return &fetch.Tree{Revision: p.locked.Revision}, nil
	}
	o, err := p.r.bucketOptions(obj)
	var endpoint *bucket.STSEndpointError
	switch {
	case errors.As(err, &endpoint):
		return nil, status.URLInvalid.Wrap(err)
	case err != nil:
		return nil, status.AuthenticationFailed.Wrap(err)
	case obj.Spec.ServiceAccountName != "":
		return nil, status.FeatureGateDisabled.Wrap(credential.ErrAccount)
	}
	p.warnWithheld(bucket.Withheld(p.r.client, o))
	if current := p.stored(); current != nil {
		if d, err := godigest.Parse(current.Revision); err == nil {
			o.Algorithm = d.Algorithm() // otherwise a change of the flag alone would make a new artifact
		}
	}
	o.Unless = p.upToDate(func(revision string) string { return bucketFingerprint(obj, revision) })
	if p.locked != nil && o.Unless != "" && o.Unless == p.locked.Revision {
		return &fetch.Tree{Revision: o.Unless, Unchanged: true}, nil
	}
	if e := cmp.Or(p.locked, p.asked); e != nil {
		if d, err := godigest.Parse(e.Revision); err == nil {
			o.Algorithm, o.Unless = d.Algorithm(), ""
		}
	}
	if e := p.locked; e != nil {
		o.Revision = e.Revision
	}
	o.Memory = p.r.memory(p.r.ownScope(ctx, p.adm, bucketURL(obj)))
	if o.TempDir, err = p.r.temp.Dir(); err != nil {
		return nil, temporaryFailure(err)
	}
	t, err := bucket.Download(ctx, p.r.client, o)
	if fetch.AuthFailure(err) {
		return nil, status.AuthenticationFailed.Wrap(err)
	}
	if err == nil {
		err = p.revisionAsLocked(t)
	}
	return t, status.BucketOperationFailed.Wrap(err)
}

func (r *Reconciler) bucketOptions(obj *sourcev1.Bucket) (bucket.Options, error) {
	o := bucket.Options{
		Provider: obj.Spec.Provider,
		Bucket:   obj.Spec.BucketName,
		Endpoint: obj.Spec.Endpoint,
		Region:   obj.Spec.Region,
		Prefix:   obj.Spec.Prefix,
		Insecure: obj.Spec.Insecure,
		Ignore:   ignored(obj.Spec.Ignore),
		Reach:    r.o.Reach,
		Timeout:  timeoutOf(obj.Spec.Timeout),

		Algorithm: godigest.Algorithm(r.o.DigestAlgorithm),
	}
	var err error
	if o.Login, o.Ambient, err = r.secrets.Bucket(obj); err != nil {
		return o, err
	}
	if o.Identity, err = r.secrets.BucketCertificates(obj.Namespace, obj.Spec.CertSecretRef); err != nil {
		return o, err
	}
	if o.Proxy, err = r.secrets.Proxy(obj.Namespace, obj.Spec.ProxySecretRef); err != nil {
		return o, err
	}
	o.STS, err = r.secrets.STS(obj)
	return o, err
}

// bucketFingerprint returns a fingerprint that is equal for two artifacts with the same files.
func bucketFingerprint(obj *sourcev1.Bucket, revision string) string {
	return fingerprintOf(revision, ignored(obj.Spec.Ignore), obj.Spec.Prefix)
}

// directoryFilter returns a filter that drops the files of a directory which would
// not have been downloaded from a bucket.
func directoryFilter(t *fetch.Tree, obj *sourcev1.Bucket) (tree.Filter, error) {
	own, err := t.Root.ReadFile(tree.IgnoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rules, err := tree.NewRules(string(own), ignored(obj.Spec.Ignore))
	if err != nil {
		return nil, err
	}
	return tree.All(rules.Choose, prefixed(obj.Spec.Prefix)), nil
}

func prefixed(prefix string) tree.Filter {
	return func(name string, dir bool) tree.Choice {
		switch {
		case strings.HasPrefix(name, prefix), name == tree.IgnoreFile, dir && strings.HasPrefix(prefix, name+"/"):
			return tree.Keep
		case dir && strings.HasPrefix(name+"/", prefix):
			return tree.Keep
		case dir:
			return tree.DropAll
		}
		return tree.Drop
	}
}
