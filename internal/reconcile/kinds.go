package reconcile

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	swv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/inventory"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/operator"
	"github.com/helmsrc/helmsrc/internal/status"
	"github.com/helmsrc/helmsrc/internal/store"
)

// Kinds returns the kinds that helmsrc reconciles, sources first.
func Kinds() Table {
	return Table{
		kindOf(kind{group: sourcev1.GroupVersion.Group, name: sourcev1.HelmRepositoryKind, plural: "helmrepositories", short: "helmrepo", source: true, listed: true, link: store.LinkIndex},
			func(o *sourcev1.HelmRepository) parts {
				s := &o.Status
				return parts{status: s, generation: &s.ObservedGeneration, conditions: &s.Conditions, artifact: &s.Artifact, url: &s.URL, handled: &s.LastHandledReconcileAt,
					suspended: o.Spec.Suspend, static: o.Spec.Type == sourcev1.HelmRepositoryTypeOCI}
			},
			func(p *reconciliation, o *sourcev1.HelmRepository) objectSteps {
				return &repositoryReconciliation{reconciliation: p, obj: o}
			}),
		kindOf(kind{group: sourcev1.GroupVersion.Group, name: sourcev1.GitRepositoryKind, plural: "gitrepositories", short: "gitrepo", source: true},
			func(o *sourcev1.GitRepository) parts {
				s := &o.Status
				return parts{status: s, generation: &s.ObservedGeneration, conditions: &s.Conditions, artifact: &s.Artifact, handled: &s.LastHandledReconcileAt, suspended: o.Spec.Suspend}
			},
			func(p *reconciliation, o *sourcev1.GitRepository) objectSteps {
				return &gitReconciliation{treeReconciliation{reconciliation: p}, o}
			}),
		kindOf(kind{group: sourcev1.GroupVersion.Group, name: sourcev1.BucketKind, plural: "buckets", short: "bucket", source: true, link: store.LinkLatest},
			func(o *sourcev1.Bucket) parts {
				s := &o.Status
				return parts{status: s, generation: &s.ObservedGeneration, conditions: &s.Conditions, artifact: &s.Artifact, url: &s.URL, handled: &s.LastHandledReconcileAt, suspended: o.Spec.Suspend}
			},
			func(p *reconciliation, o *sourcev1.Bucket) objectSteps {
				return &bucketReconciliation{treeReconciliation{reconciliation: p}, o}
			}),
		kindOf(kind{group: sourcev1.GroupVersion.Group, name: sourcev1.OCIRepositoryKind, plural: "ocirepositories", short: "ocirepo", source: true, listed: true, link: store.LinkLatest},
			func(o *sourcev1.OCIRepository) parts {
				s := &o.Status
				return parts{status: s, generation: &s.ObservedGeneration, conditions: &s.Conditions, artifact: &s.Artifact, url: &s.URL, handled: &s.LastHandledReconcileAt, suspended: o.Spec.Suspend}
			},
			func(p *reconciliation, o *sourcev1.OCIRepository) objectSteps { return &ociReconciliation{p, o} }),
		kindOf(kind{group: sourcev1.GroupVersion.Group, name: sourcev1.HelmChartKind, plural: "helmcharts", short: "hc", listed: true, link: store.LinkLatest},
			func(o *sourcev1.HelmChart) parts {
				s := &o.Status
				return parts{status: s, generation: &s.ObservedGeneration, conditions: &s.Conditions, artifact: &s.Artifact, url: &s.URL, handled: &s.LastHandledReconcileAt,
					suspended: o.Spec.Suspend, sourceKind: o.Spec.SourceRef.Kind, sourceName: o.Spec.SourceRef.Name}
			},
			func(p *reconciliation, o *sourcev1.HelmChart) objectSteps {
				return &chartReconciliation{reconciliation: p, obj: o}
			}),
		kindOf(kind{group: swv1.GroupVersion.Group, name: swv1.ArtifactGeneratorKind, plural: "artifactgenerators", short: "ag", noArtifact: true, settled: true, folds: status.FoldGenerator},
			func(o *swv1.ArtifactGenerator) parts {
				return parts{status: &o.Status, conditions: &o.Status.Conditions, handled: &o.Status.LastHandledReconcileAt, suspended: o.IsDisabled()}
			},
			func(p *reconciliation, o *swv1.ArtifactGenerator) objectSteps { return &generatorReconciliation{p, o} }),
		kindOf(kind{group: sourcev1.GroupVersion.Group, name: sourcev1.ExternalArtifactKind, plural: "externalartifacts", short: "ea", source: true, link: store.LinkLatest, folds: status.FoldExternalArtifact},
			func(o *sourcev1.ExternalArtifact) parts {
				return parts{status: &o.Status, conditions: &o.Status.Conditions, artifact: &o.Status.Artifact,
					suspended: o.Annotations[swv1.ReconcileAnnotation] == swv1.DisabledValue, // that of the generator
					static:    !generated(o)}
			},
			func(p *reconciliation, _ *sourcev1.ExternalArtifact) objectSteps {
				return &externalReconciliation{treeReconciliation{reconciliation: p}}
			}),
		kindOf(kind{group: helmv2.GroupVersion.Group, name: helmv2.HelmReleaseKind, plural: "helmreleases", short: "hr", noArtifact: true, folds: status.FoldRelease, makes: status.ReleaseEvents},
			func(o *helmv2.HelmRelease) parts {
				s := &o.Status
				p := parts{status: s, generation: &s.ObservedGeneration, conditions: &s.Conditions, handled: &s.LastHandledReconcileAt, suspended: o.Spec.Suspend}
				p.sourceKind, p.sourceNamespace, p.sourceName = inventory.ReleaseReference(o)
				return p
			},
			func(p *reconciliation, o *helmv2.HelmRelease) objectSteps { return &releaseReconciliation{p, o} }),
		operatedKind(operator.Group), operatedKind(operator.OlderGroup),
	}
}

// HasNoStatus reports whether an object has no status by design, or may have none because it is suspended.
func HasNoStatus(obj *manifest.Object) bool {
	k, ok := Kinds().of(obj)
	if !ok {
		return false
	}
	adm, err := admission.Admit(obj)
	if err != nil {
		return false
	}
	p := k.parts(adm.Typed)
	return p.static || p.suspended
}
