package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/generate"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
	"github.com/helmsrc/helmsrc/internal/tree"
)

type generatorReconciliation struct {
	*reconciliation
	obj *swv1.ArtifactGenerator
}

// perform reconciles the artifacts of the generator, which generates them, and records them in its inventory.
func (p *generatorReconciliation) perform(ctx context.Context) error {
	obj := p.obj
	if p.r.o.Verify { // the sources of the artifacts are verified on their own
		p.out.Stored = &status.Observation{Reason: status.Succeeded, Message: "reconciliation succeeded"}
		return nil
	}
	sources, err := p.r.generatorSources(ctx, p.adm)
	if err != nil {
		return err
	}
	obj.Status.ObservedSourcesDigest = ""
	if !allAvailable(ctx, sources) {
		return nil // resolve stops here: nothing is downloaded
	}
	made := p.r.inventory.Artifacts(p.adm.Object)
	if err := p.r.inventory.ClashOf(p.adm.Object, obj); err != nil {
		return status.GeneratorBuildFailed.Stall(finding.WithCode(finding.ChartClash, err))
	}
	if obj.Spec.PathPattern != "" {
		if err := p.knowsAll(ctx, sources, len(made)); err != nil {
			return err
		}
	}
	var artifacts []swv1.ExternalArtifactReference
	stored := true
	for _, artifact := range made {
		adm, err := p.r.inventory.Admit(artifact)
		if err != nil {
			return status.Reason("ReconciliationFailed").Wrap(fmt.Errorf("%s reconcile failed: %w", artifact.Name, err))
		}
		result := p.r.result(ctx, adm)
		switch {
		case result.Failure != nil:
			failure := *result.Failure
			return &failure
		case result.Artifact() == nil:
			stored = false
			continue
		}
		at := result.Artifact()
		artifacts = append(artifacts, swv1.ExternalArtifactReference{
			Name: artifact.Name, Namespace: artifact.Namespace, Digest: at.Digest, Filename: path.Base(at.Path),
		})
	}
	obj.Status.Inventory, obj.Status.ObservedSourcesDigest = artifacts, "sha256:"+fingerprintOf(digestsOf(sources))
	if stored {
		p.out.Stored = &status.Observation{Reason: status.Succeeded, Message: fmt.Sprintf("reconciliation succeeded, generated %d artifact(s)", len(made))}
	}
	return nil
}

// knowsAll returns an error if pathPattern generates more or fewer artifacts than were known before the fetch.
func (p *generatorReconciliation) knowsAll(ctx context.Context, sources map[string]*Result, known int) error {
	out, err := p.r.generated(ctx, p.adm, sources)
	if err == nil {
		err = out.err
	}
	if err != nil {
		return err
	}
	if len(out.artifacts) != known {
		return status.GeneratorBuildFailed.Wrap(&finding.Problem{
			Text:   fmt.Sprintf("pathPattern creates %d artifact(s) from a source that is not this checkout: their names must be known before the run", len(out.artifacts)),
			Advice: finding.CheckoutOfSource,
		})
	}
	return nil
}

func (r *Reconciler) generatorSources(ctx context.Context, adm *admission.Admitted) (map[string]*Result, error) {
	obj := adm.Typed.(*swv1.ArtifactGenerator)
	if err := generate.Validate(&obj.Spec); err != nil {
		return nil, status.ValidationFailed.Stall(refusedGenerator(err))
	}
	if cycle := r.inventory.Cycle(adm.Object); cycle != nil {
		return nil, status.SourceFetchFailed.Wrap(cycle)
	}
	sources := map[string]*Result{}
	for _, s := range obj.Spec.Sources {
		namespace := cmp.Or(s.Namespace, adm.Object.Namespace)
		if err := r.inventory.Access(adm.Object.Namespace, s.Kind, namespace, s.Name); err != nil {
			return nil, status.AccessDenied.Stall(fmt.Errorf("cross-namespace reference to source %s/%s/%s is not allowed", s.Kind, namespace, s.Name))
		}
		found, err := r.inventory.FindFor(adm.Object, s.Kind, namespace, s.Name)
		if _, missing := errors.AsType[*manifest.NotFoundError](err); missing {
			if only := r.directoryAlone(adm.Object, s.Kind, namespace, s.Name); only != nil {
				found, err = only, nil
			}
		}
		if err != nil {
			return nil, status.SourceFetchFailed.Wrap(fmt.Errorf("get sources failed: %w", err))
		}
		result := r.result(ctx, found)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !available(ctx, result) && (r.o.Until == Fetch || result.Failure != nil) {
			return nil, notReadySource(s.Kind, namespace, s.Name, result)
		}
		sources[s.Alias] = result
	}
	return sources, nil
}

// directoryAlone returns a GitRepository that no manifest defines but that a local directory replaces: a repository's source
// and its login may exist only in the cluster. It returns nil if no directory replaces the source.
func (r *Reconciler) directoryAlone(generator *manifest.Object, kind, namespace, name string) *admission.Admitted {
	if _, ok := r.o.Directories[store.NewKey(kind, namespace, name)]; !ok || kind != sourcev1.GitRepositoryKind {
		return nil
	}
	adm, err := r.inventory.Admit(r.alone(generator, kind, namespace, name))
	if err != nil {
		return nil
	}
	return adm
}

func (r *Reconciler) alone(generator *manifest.Object, kind, namespace, name string) *manifest.Object {
	obj, _ := r.sources.Do(context.Background(), store.NewKey(kind, namespace, name), func() (*manifest.Object, error) {
		return generator.Derive(manifest.Object{
			APIVersion: sourcev1.GroupVersion.String(), Kind: kind, Namespace: namespace, Name: name,
			Content: map[string]any{
				"apiVersion": sourcev1.GroupVersion.String(), "kind": kind,
				"metadata": map[string]any{"name": name, "namespace": namespace},
				"spec":     map[string]any{"interval": "1h", "url": "https://localhost/" + name},
			},
		}, func([]any) []any { return []any{"spec", "sources"} }), nil
	})
	return obj
}

// notReadySource returns a failure that inherits the class of the source's own failure.
func notReadySource(kind, namespace, name string, source *Result) error {
	return &status.Failure{
		Type: meta.ReadyCondition, Reason: status.SourceFetchFailed,
		Message: fmt.Sprintf("get sources failed: source '%s/%s/%s' is not ready", kind, namespace, name),
		Err:     causeOf(source),
	}
}

func available(ctx context.Context, source *Result) bool {
	if source.Artifact() != nil {
		return true
	}
	_, err := source.tree(ctx)
	return err == nil
}

func allAvailable(ctx context.Context, sources map[string]*Result) bool {
	for _, s := range sources {
		if !available(ctx, s) {
			return false
		}
	}
	return true
}

// digestsOf returns the digests and revisions of the sources, sorted by alias: with the spec, they determine an artifact.
func digestsOf(sources map[string]*Result) []string {
	var list []string
	for alias, s := range sources {
		text := alias + "="
		if artifact := s.Artifact(); artifact != nil {
			text += artifact.Digest + " " + artifact.Revision
		} else if t, err := s.tree(context.Background()); err == nil {
			text += t.revision
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// generated builds the artifacts of a generator, once per run.
func (r *Reconciler) generated(ctx context.Context, adm *admission.Admitted, sources map[string]*Result) (*generatedArtifacts, error) {
	return r.outputs.Do(ctx, keyOf(adm), func() (*generatedArtifacts, error) {
		trees := map[string]*generate.Tree{}
		for alias, source := range sources {
			t, err := r.generatorTree(ctx, source)
			if err != nil {
				return nil, status.SourceFetchFailed.Wrap(fmt.Errorf("fetch sources failed: %w", err))
			}
			trees[alias] = t
		}
		spec := adm.Typed.(*swv1.ArtifactGenerator).Spec
		artifacts, _, err := generate.Build(ctx, &spec, trees)
		if ctx.Err() != nil {
			return nil, err
		}
		if refused, ok := errors.AsType[*generate.Error](err); ok {
			err = refusedGenerator(refused)
			if refused.Stalled {
				err = status.Reason(refused.Reason).Stall(err)
			} else {
				err = &status.Failure{Type: meta.ReadyCondition, Reason: status.Reason(refused.Reason), Message: err.Error(), Err: err}
			}
		}
		return &generatedArtifacts{artifacts, err}, nil
	})
}

// refusedGenerator returns the error of a generator, at the field that it is about.
func refusedGenerator(err *generate.Error) error {
	return &finding.Problem{Code: finding.RefusedGenerator, Field: err.Path, Text: err.Message, Err: err}
}

func (r *Reconciler) generatorTree(ctx context.Context, source *Result) (*generate.Tree, error) {
	from, err := source.tree(ctx)
	if artifact := source.Artifact(); err != nil && artifact != nil { // a chart or an OCIRepository has no tree
		root, unpackErr := r.unpack(ctx, artifact.Path)
		from, err = &sourceTree{root: root}, unpackErr
	}
	if err != nil {
		return nil, err
	}
	root, err := from.files(ctx)
	if err != nil {
		return nil, err
	}
	names, dirs, err := tree.List(ctx, root, tree.Options{Filter: from.filter})
	if err != nil {
		return nil, err
	}
	t := generate.NewTree()
	for _, dir := range dirs {
		if err := t.AddDir(dir); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if err := t.Add(name, generate.File{Content: rootFile{root, name}, Executable: info.Mode()&0o111 != 0}); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// maxGenerated is the limit, in bytes, of a file that is merged or unpacked.
const maxGenerated = 100 << 20

type rootFile struct {
	root *os.Root
	name string
}

func (f rootFile) Bytes() ([]byte, error) {
	file, err := f.root.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxGenerated+1))
	if err == nil && len(data) > maxGenerated {
		err = fmt.Errorf("%s has more than %d MiB", f.name, maxGenerated>>20)
	}
	return data, err
}

// stage writes the files of an artifact below a directory.
func stage(ctx context.Context, root *os.Root, t *generate.Tree) error {
	for _, dir := range t.Dirs() {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for _, name := range t.Names() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, _ := t.File(name)
		if err := stageFile(root, name, f); err != nil {
			return err
		}
	}
	return nil
}

func stageFile(root *os.Root, name string, f generate.File) (err error) {
	mode := os.FileMode(0o600)
	if f.Executable {
		mode = 0o700
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if from, ok := f.Content.(rootFile); ok {
		in, err := from.root.Open(from.name)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.Copy(out, in)
		return err
	}
	data, err := f.Content.Bytes()
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

func aliasOf(field string) string { return strings.TrimPrefix(field, "@") }
