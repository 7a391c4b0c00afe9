// Package operator has the HelmRelease of Flux 1, and the rules of the Helm Operator about it: the name of the release, the source
// of its chart, when it is ignored or tried again. It does no I/O.
package operator

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API groups of HelmReleases of Flux 1. No conversion exists between them: each operator handles its own group.
const (
	Group      = "helm.fluxcd.io"   // version v1, served by the operators since 1.0
	OlderGroup = "flux.weave.works" // version v1beta1, served by earlier operators
	Kind       = "HelmRelease"
)

// HelmRelease is a release of either group. Its fields are those of helm.fluxcd.io/v1 in version 1.4.4 of the operator, which is
// the last version; the older group has fewer fields.
type HelmRelease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty"`
}

// Spec is the specification of a release.
type Spec struct {
	HelmVersion              string                 `json:"helmVersion,omitempty"`
	Chart                    Chart                  `json:"chart"`
	ReleaseName              string                 `json:"releaseName,omitempty"`
	TargetNamespace          string                 `json:"targetNamespace,omitempty"`
	MaxHistory               *int                   `json:"maxHistory,omitempty"`
	Timeout                  *int64                 `json:"timeout,omitempty"` // seconds
	Wait                     *bool                  `json:"wait,omitempty"`
	ResetValues              *bool                  `json:"resetValues,omitempty"`
	ForceUpgrade             bool                   `json:"forceUpgrade,omitempty"`
	SkipCRDs                 bool                   `json:"skipCRDs,omitempty"`
	DisableOpenAPIValidation bool                   `json:"disableOpenAPIValidation,omitempty"`
	Rollback                 Rollback               `json:"rollback,omitzero"`
	Test                     Test                   `json:"test,omitzero"`
	ValueFileSecrets         []LocalObjectReference `json:"valueFileSecrets,omitempty"`
	ValuesFrom               []ValuesFromSource     `json:"valuesFrom,omitempty"`
	Values                   *apiextensionsv1.JSON  `json:"values,omitempty"`
}

// Chart names the chart: in a Git repository if Git and Path are set, otherwise in a Helm repository if Repository, Name and
// Version are set.
type Chart struct {
	Git           string           `json:"git,omitempty"`
	Ref           string           `json:"ref,omitempty"`
	Path          string           `json:"path,omitempty"`
	SecretRef     *ObjectReference `json:"secretRef,omitempty"`
	SkipDepUpdate bool             `json:"skipDepUpdate,omitempty"`

	Repository      string                `json:"repository,omitempty"`
	Name            string                `json:"name,omitempty"`
	Version         string                `json:"version,omitempty"`
	ChartPullSecret *LocalObjectReference `json:"chartPullSecret,omitempty"`
}

// LocalObjectReference names an object in the namespace of the release.
type LocalObjectReference struct {
	Name string `json:"name"`
}

// ObjectReference names an object; an empty namespace is the namespace of the release.
type ObjectReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// KeyReference names a key of a ConfigMap or Secret.
type KeyReference struct {
	ObjectReference `json:",inline"`

	Key      string `json:"key,omitempty"`
	Optional bool   `json:"optional,omitempty"`
}

// ExternalSource names a file of values by its URL.
type ExternalSource struct {
	URL      string `json:"url"`
	Optional *bool  `json:"optional,omitempty"`
}

// ChartFile names a file of values in the chart's directory.
type ChartFile struct {
	Path     string `json:"path"`
	Optional *bool  `json:"optional,omitempty"`
}

// ValuesFromSource is an entry of valuesFrom. If several sources are set, the operator uses the first.
type ValuesFromSource struct {
	ConfigMapKeyRef   *KeyReference   `json:"configMapKeyRef,omitempty"`
	SecretKeyRef      *KeyReference   `json:"secretKeyRef,omitempty"`
	ExternalSourceRef *ExternalSource `json:"externalSourceRef,omitempty"`
	ChartFileRef      *ChartFile      `json:"chartFileRef,omitempty"`
}

// Rollback configures the rollback after a failed upgrade.
type Rollback struct {
	Enable       bool   `json:"enable,omitempty"`
	Retry        bool   `json:"retry,omitempty"`
	MaxRetries   *int64 `json:"maxRetries,omitempty"`
	Force        bool   `json:"force,omitempty"`
	Recreate     bool   `json:"recreate,omitempty"`
	DisableHooks bool   `json:"disableHooks,omitempty"`
	Timeout      *int64 `json:"timeout,omitempty"` // seconds
	Wait         bool   `json:"wait,omitempty"`
}

// Test configures the tests of the chart.
type Test struct {
	Enable         bool   `json:"enable,omitempty"`
	IgnoreFailures *bool  `json:"ignoreFailures,omitempty"`
	Timeout        *int64 `json:"timeout,omitempty"` // seconds
	Cleanup        *bool  `json:"cleanup,omitempty"`
}

// Status is the status that the operator writes.
type Status struct {
	ObservedGeneration    int64       `json:"observedGeneration,omitempty"`
	Phase                 string      `json:"phase,omitempty"`
	ReleaseName           string      `json:"releaseName,omitempty"`
	ReleaseStatus         string      `json:"releaseStatus,omitempty"`
	Revision              string      `json:"revision,omitempty"`
	LastAttemptedRevision string      `json:"lastAttemptedRevision,omitempty"`
	ValuesChecksum        string      `json:"valuesChecksum,omitempty"`
	RollbackCount         int64       `json:"rollbackCount,omitempty"`
	Conditions            []Condition `json:"conditions,omitempty"`
}

// Condition is a condition of the operator, whose form differs from metav1.Condition.
type Condition struct {
	Type               string       `json:"type"`
	Status             string       `json:"status"`
	LastUpdateTime     *metav1.Time `json:"lastUpdateTime,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	Reason             string       `json:"reason,omitempty"`
	Message            string       `json:"message,omitempty"`
}

// DeepCopy returns a copy that shares no memory with the release.
func (hr *HelmRelease) DeepCopy() *HelmRelease {
	b, err := json.Marshal(hr)
	if err != nil {
		panic("a HelmRelease is no JSON: " + err.Error()) // it was decoded from JSON
	}
	c := new(HelmRelease)
	if err := json.Unmarshal(b, c); err != nil {
		panic("a HelmRelease does not read its own JSON: " + err.Error())
	}
	return c
}

// GetReleaseName returns the name of the Helm release: the operator does not shorten it.
func (hr *HelmRelease) GetReleaseName() string {
	switch {
	case hr.Spec.ReleaseName != "":
		return hr.Spec.ReleaseName
	case hr.GetTargetNamespace() != hr.Namespace:
		return hr.Namespace + "-" + hr.Spec.TargetNamespace + "-" + hr.Name
	}
	return hr.Namespace + "-" + hr.Name
}

// GetTargetNamespace returns the namespace of the release and of its storage.
func (hr *HelmRelease) GetTargetNamespace() string {
	if hr.Spec.TargetNamespace != "" {
		return hr.Spec.TargetNamespace
	}
	return hr.Namespace
}

// SourceKind is the kind of a chart's source.
type SourceKind int

// The kinds of sources.
const (
	NoSource SourceKind = iota
	GitSource
	RepositorySource
)

// DefaultRef is the default of the operator's --git-default-ref.
const DefaultRef = "master"

// Source returns the kind of source from which the operator takes the chart.
func (c *Chart) Source() SourceKind {
	switch {
	case c.Git != "" && c.Path != "":
		return GitSource
	case c.Repository != "" && c.Name != "" && c.Version != "":
		return RepositorySource
	}
	return NoSource
}

// RefOr returns the revision of the Git repository, or otherwise if it has none.
func (c *Chart) RefOr(otherwise string) string {
	if c.Ref != "" {
		return c.Ref
	}
	return otherwise
}

// Ignored reports whether Flux 1 ignores the object. The annotation must be "true".
func (hr *HelmRelease) Ignored() bool {
	return slices.ContainsFunc([]string{"fluxcd.io/ignore", "flux.weave.works/ignore"}, func(name string) bool { return hr.Annotations[name] == "true" })
}

// defaultRetries is how often a release that was rolled back is upgraded again if it does not set maxRetries.
const defaultRetries = 5

// Retries reports whether the last upgrade was rolled back and the operator tries it again; maxRetries 0 means no limit.
func (hr *HelmRelease) Retries() bool {
	if !hr.Spec.Rollback.Enable || !hr.Spec.Rollback.Retry {
		return false
	}
	most := int64(defaultRetries)
	if hr.Spec.Rollback.MaxRetries != nil {
		most = *hr.Spec.Rollback.MaxRetries
	}
	for _, c := range hr.Status.Conditions {
		if c.Type == "RolledBack" && c.Status == "True" {
			return most == 0 || hr.Status.RollbackCount <= most
		}
	}
	return false
}

// scpLike matches a URL in the form of scp: user@host:path.
var scpLike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^/@:\s]+)@([^/:\s]+):/?([^/].*)$`) })

// GitURL returns the URL of the Git repository with a scheme.
func (c *Chart) GitURL() string {
	if m := scpLike().FindStringSubmatch(c.Git); m != nil {
		return "ssh://" + m[1] + "@" + m[2] + "/" + m[3]
	}
	return c.Git
}

// ReadsSecret reports whether the operator reads SecretRef: it does so only for https.
func (c *Chart) ReadsSecret() bool {
	return c.SecretRef != nil && strings.HasPrefix(strings.ToLower(c.Git), "https://")
}
