package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	labelset "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/helmsrc/helmsrc/internal/admission"
	"github.com/helmsrc/helmsrc/internal/digest"
	"github.com/helmsrc/helmsrc/internal/fetch/oci"
	"github.com/helmsrc/helmsrc/internal/finding"
	"github.com/helmsrc/helmsrc/internal/manifest"
	"github.com/helmsrc/helmsrc/internal/policy"
	"github.com/helmsrc/helmsrc/internal/work"
)

// Image is the image that an ImagePolicy selects, or the reason why there is no image.
type Image struct {
	policy.Image
	// KeepDigest is true if a digest beside the tag is kept until the tag changes.
	KeepDigest bool
	// Suspended is the suspended object because of which the fields keep their values, or nil.
	Suspended *manifest.Object
	Err       error
}

// Images returns the image that each ImagePolicy selects. The tags of a repository are listed once. The results hold the
// warnings about the ImageRepositories.
func (r *Reconciler) Images(ctx context.Context, policies []*admission.Admitted) ([]Image, []*Result) {
	images := make([]Image, len(policies))
	results := make([]*Result, len(policies))
	work.Ordered(len(policies), r.o.Concurrency, func(i int) {
		results[i] = &Result{Object: policies[i]}
		images[i] = r.image(ctx, policies[i], results[i])
	})
	return images, results
}

// image selects the image of a policy, with the checks in the order of image-reflector-controller.
func (r *Reconciler) image(ctx context.Context, adm *admission.Admitted, result *Result) Image {
	obj := adm.Typed.(*imagev1.ImagePolicy)
	if by := r.suspendedAutomation(obj); by != nil {
		return Image{Suspended: by}
	}
	if obj.Spec.Suspend { // its status keeps the earlier image
		return Image{Suspended: adm.Object}
	}
	choice := policyOf(&obj.Spec)
	repository, err := r.imageRepository(obj)
	if err != nil {
		return Image{Err: err}
	}
	if choice.Choices() > 1 {
		result.warnAt(finding.OddSource, "several policies are set: only the first of semver, alphabetical and numerical is used", "spec", "policy")
	}
	result.Object = repository
	spec := &repository.Typed.(*imagev1.ImageRepository).Spec
	if spec.Suspend {
		return Image{Suspended: repository.Object}
	}
	p := &ociReconciliation{
		&reconciliation{r: r, subject: subject{adm: repository, key: keyOf(repository)}, result: result, remarks: &result.remarks},
		asArtifact(repository, spec),
	}
	if spec.Provider != "" && spec.Provider != "generic" && spec.SecretRef != nil {
		p.warnAt(finding.OddSecret, "spec.secretRef has no effect beside a provider: the identity of the cloud is used", "spec", "secretRef", "name")
	}
	if err := checkImage(spec.Image); err != nil {
		return Image{Err: err}
	}
	tag, repo, err := p.latestTag(ctx, spec, choice)
	if err != nil {
		return Image{Err: err}
	}
	image := Image{Image: policy.Image{Name: spec.Image, Tag: tag}, KeepDigest: obj.Spec.DigestReflectionPolicy == imagev1.ReflectIfNotPresent}
	if obj.Spec.DigestReflectionPolicy == imagev1.ReflectNever || obj.Spec.DigestReflectionPolicy == "" {
		return image
	}
	found, err := r.moving.Do(ctx, chartKey{"image " + spec.Image + " " + repo.identity, "", tag}, func() (digest.Digest, error) { return repo.Digest(ctx, tag) })
	image.Digest = found.String()
	if err != nil {
		return Image{Err: fmt.Errorf("failed to get the digest of %s:%s: %w", spec.Image, tag, err)}
	}
	return image
}

// suspendedAutomation returns an ImageUpdateAutomation that would write a policy's image, if all such automations are suspended.
func (r *Reconciler) suspendedAutomation(obj *imagev1.ImagePolicy) *manifest.Object {
	var suspended *manifest.Object
	for _, o := range r.inventory.Set().Versioned() {
		if o.Group() != manifest.ImageGroup || o.Namespace != obj.Namespace {
			continue
		}
		var automation struct {
			Spec struct {
				Suspend        bool                  `json:"suspend"`
				PolicySelector *metav1.LabelSelector `json:"policySelector"`
			} `json:"spec"`
		}
		content, err := r.inventory.Set().Content(o)
		if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &automation) != nil {
			continue // only its API version is validated here
		}
		selector := labelset.Everything()
		if automation.Spec.PolicySelector != nil {
			selector, err = metav1.LabelSelectorAsSelector(automation.Spec.PolicySelector)
		}
		switch {
		case err != nil || !selector.Matches(labelset.Set(obj.Labels)):
		case !automation.Spec.Suspend:
			return nil
		default:
			suspended = cmp.Or(suspended, o)
		}
	}
	return suspended
}

func (p *ociReconciliation) latestTag(ctx context.Context, spec *imagev1.ImageRepositorySpec, choice policy.Policy) (string, *ociRepository, error) {
	repo, err := p.openOCIRepository(ctx, p.obj)
	if err != nil {
		return "", nil, err
	}
	tags, err := repo.tags(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("scan failed: %w", err)
	}
	listed, err := policy.Listed(tags, spec.ExclusionList)
	if err != nil {
		return "", nil, err
	}
	tag, err := choice.Latest(listed)
	return tag, repo, err
}

func policyOf(spec *imagev1.ImagePolicySpec) policy.Policy {
	var p policy.Policy
	if c := spec.Policy.SemVer; c != nil {
		p.Semver = &c.Range
	}
	if c := spec.Policy.Alphabetical; c != nil {
		p.Alphabetical = &c.Order
	}
	if c := spec.Policy.Numerical; c != nil {
		p.Numerical = &c.Order
	}
	if f := spec.FilterTags; f != nil {
		p.Pattern, p.Extract = f.Pattern, f.Extract
	}
	return p
}

// imageRepository returns the repository of a policy, or an error if the policy may not use it.
func (r *Reconciler) imageRepository(obj *imagev1.ImagePolicy) (*admission.Admitted, error) {
	ref := obj.Spec.ImageRepositoryRef
	namespace := cmp.Or(ref.Namespace, obj.Namespace)
	found, err := r.inventory.Find(imagev1.ImageRepositoryKind, namespace, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("failed to get the referred ImageRepository: referenced ImageRepository does not exist: %w", err)
	}
	repository := found.Typed.(*imagev1.ImageRepository)
	if namespace == obj.Namespace {
		return found, nil
	}
	denied := fmt.Sprintf("failed to get the referred ImageRepository: access denied: '%s/%s' can't be accessed due to ", namespace, ref.Name)
	if repository.Spec.AccessFrom == nil {
		return nil, errors.New(denied + "missing ACL labels on 'accessFrom'")
	}
	labels, err := r.inventory.Set().NamespaceLabels(obj.Namespace)
	for _, selector := range repository.Spec.AccessFrom.NamespaceSelectors {
		if labelset.SelectorFromSet(selector.MatchLabels).Matches(labelset.Set(labels)) {
			return found, nil
		}
	}
	err = cmp.Or(err, errors.New("none of spec.accessFrom.namespaceSelectors matches its labels"))
	return nil, fmt.Errorf("%sACL labels mismatch on namespace '%s': %w", denied, obj.Namespace, err)
}

// asArtifact returns an OCIRepository with the settings of an image repository, for the code that opens registries.
func asArtifact(adm *admission.Admitted, spec *imagev1.ImageRepositorySpec) *sourcev1.OCIRepository {
	timeout := cmp.Or(spec.Timeout, &metav1.Duration{Duration: max(spec.Interval.Duration, time.Second)})
	obj := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: adm.Object.Namespace, Name: adm.Object.Name}}
	obj.Spec = sourcev1.OCIRepositorySpec{
		URL: "oci://" + spec.Image, Interval: spec.Interval, Timeout: timeout, Provider: spec.Provider, Insecure: spec.Insecure,
		ServiceAccountName: spec.ServiceAccountName, SecretRef: spec.SecretRef, CertSecretRef: spec.CertSecretRef, ProxySecretRef: spec.ProxySecretRef,
	}
	if spec.Provider != "" && spec.Provider != "generic" {
		obj.Spec.SecretRef = nil
	}
	return obj
}

func checkImage(image string) error {
	if scheme, _, found := strings.Cut(image, "://"); found {
		return fmt.Errorf("image '%s' should not include URL scheme; remove '%s://'", image, scheme)
	}
	_, path, _ := strings.Cut(image, "/")
	if _, rest, found := strings.Cut(path, ":"); found {
		return fmt.Errorf("image '%s' should not include a tag; remove ':%s'", image, rest)
	}
	if _, rest, found := strings.Cut(image, "@"); found {
		return fmt.Errorf("image '%s' should not include a digest; remove '@%s'", image, rest)
	}
	if _, err := oci.ParseURL("oci://" + image); err != nil {
		return fmt.Errorf("could not parse reference: %s", image)
	}
	return nil
}
