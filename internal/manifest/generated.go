package manifest

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// recipe describes how a controller in the cluster creates Secrets or ConfigMaps from an object.
type recipe struct {
	group, kind string
	makes       string
	names       []string // fields with the name, the first that exists counts; * is every element of a list
	namespace   string   // the field with the namespace, "" for the object's own
	suffix      string   // added to the name
	anywhere    bool     // in the namespaces that have certain labels, which only the cluster knows
}

const (
	aSecret    = "Secret"
	aConfigMap = "ConfigMap"
	ownName    = "metadata.name"
)

// recipes are the recipes of widely used controllers, one entry per generated object.
var recipes = []recipe{
	{group: "bitnami.com", kind: "SealedSecret", makes: aSecret, names: []string{"spec.template.metadata.name", ownName}},
	{group: "external-secrets.io", kind: "ExternalSecret", makes: aSecret, names: []string{"spec.target.name", ownName}},
	{group: "external-secrets.io", kind: "ClusterExternalSecret", makes: aSecret, names: []string{"spec.externalSecretSpec.target.name", "spec.externalSecretName", ownName}, anywhere: true},
	{group: "kubernetes-client.io", kind: "ExternalSecret", makes: aSecret, names: []string{ownName}},
	{group: "cert-manager.io", kind: "Certificate", makes: aSecret, names: []string{"spec.secretName"}},
	{group: "onepassword.com", kind: "OnePasswordItem", makes: aSecret, names: []string{ownName}},
	{group: "secrets.hashicorp.com", kind: "VaultStaticSecret", makes: aSecret, names: []string{"spec.destination.name"}},
	{group: "secrets.hashicorp.com", kind: "VaultDynamicSecret", makes: aSecret, names: []string{"spec.destination.name"}},
	{group: "secrets.hashicorp.com", kind: "VaultPKISecret", makes: aSecret, names: []string{"spec.destination.name"}},
	{group: "secrets.hashicorp.com", kind: "HCPVaultSecretsApp", makes: aSecret, names: []string{"spec.destination.name"}},
	{group: "ricoberger.de", kind: "VaultSecret", makes: aSecret, names: []string{ownName}},
	{group: "isindir.github.com", kind: "SopsSecret", makes: aSecret, names: []string{"spec.secretTemplates.*.name"}},
	{group: "spv.no", kind: "AzureKeyVaultSecret", makes: aSecret, names: []string{"spec.output.secret.name"}},
	{group: "secrets.doppler.com", kind: "DopplerSecret", makes: aSecret, names: []string{"spec.managedSecret.name"}, namespace: "spec.managedSecret.namespace"},
	{group: "secrets.infisical.com", kind: "InfisicalSecret", makes: aSecret, names: []string{"spec.managedSecretReference.secretName"}, namespace: "spec.managedSecretReference.secretNamespace"},
	{group: "k8s.bitwarden.com", kind: "BitwardenSecret", makes: aSecret, names: []string{"spec.secretName"}},
	{group: "secretgenerator.mittwald.de", kind: "StringSecret", makes: aSecret, names: []string{ownName}},
	{group: "secretgenerator.mittwald.de", kind: "BasicAuth", makes: aSecret, names: []string{ownName}},
	{group: "secretgenerator.mittwald.de", kind: "SSHKeyPair", makes: aSecret, names: []string{ownName}},
	{group: "secretgen.k14s.io", kind: "Password", makes: aSecret, names: []string{ownName}},
	{group: "secretgen.k14s.io", kind: "SSHKey", makes: aSecret, names: []string{ownName}},
	{group: "secretgen.k14s.io", kind: "RSAKey", makes: aSecret, names: []string{ownName}},
	{group: "secretgen.k14s.io", kind: "Certificate", makes: aSecret, names: []string{ownName}},
	{group: "secretgen.carvel.dev", kind: "SecretImport", makes: aSecret, names: []string{ownName}},
	{group: "secretgen.carvel.dev", kind: "SecretTemplate", makes: aSecret, names: []string{ownName}},
	{group: "objectbucket.io", kind: "ObjectBucketClaim", makes: aSecret, names: []string{ownName}},
	{group: "objectbucket.io", kind: "ObjectBucketClaim", makes: aConfigMap, names: []string{ownName}},
	{group: "kafka.strimzi.io", kind: "KafkaUser", makes: aSecret, names: []string{ownName}},
	{group: "postgresql.cnpg.io", kind: "Cluster", makes: aSecret, names: []string{ownName}, suffix: "-app"},
	{group: "postgresql.cnpg.io", kind: "Cluster", makes: aSecret, names: []string{ownName}, suffix: "-superuser"},
	{group: "rabbitmq.com", kind: "RabbitmqCluster", makes: aSecret, names: []string{ownName}, suffix: "-default-user"},
	{group: "elasticsearch.k8s.elastic.co", kind: "Elasticsearch", makes: aSecret, names: []string{ownName}, suffix: "-es-elastic-user"},
	{group: "infra.contrib.fluxcd.io", kind: "Terraform", makes: aSecret, names: []string{"spec.writeOutputsToSecret.name"}},
	// Crossplane, for an object of any kind.
	{makes: aSecret, names: []string{"spec.writeConnectionSecretToRef.name"}, namespace: "spec.writeConnectionSecretToRef.namespace"},
}

// maxGenerated is the limit of Secrets and ConfigMaps that one object may generate.
const maxGenerated = 100

// Generated is a Secret or a ConfigMap that a controller in the cluster creates.
type Generated struct{ Kind, Namespace, Name string }

// A Generator is an object from which a controller in the cluster creates a Secret or a ConfigMap.
type Generator struct {
	Object    *Object
	Generates Generated
}

func generatedBy(o *Object, text func(path ...any) string) []Generator {
	var list []Generator
	for _, r := range recipes {
		if r.kind != "" && (r.group != o.Group() || r.kind != o.Kind) {
			continue
		}
		namespace := cmp.Or(append(namesAt(r.namespace, text), o.Namespace)...)
		if r.anywhere {
			namespace = ""
		}
		for _, field := range r.names {
			names := namesAt(field, text)
			for _, name := range names {
				if len(list) < maxGenerated {
					list = append(list, Generator{o, Generated{r.makes, namespace, name + r.suffix}})
				}
			}
			if len(names) > 0 {
				break
			}
		}
	}
	return list
}

// GeneratedBy lists the objects that controllers in the cluster create from an object of a build.
func GeneratedBy(content map[string]any) []Generator {
	o := new(Object)
	o.APIVersion, o.Kind, o.Namespace, o.Name = Identify(content)
	return generatedBy(o, textsOf(content))
}

// Generators lists the objects of the file from which controllers create Secrets and ConfigMaps.
func (f *File) Generators() []Generator { return f.batch.generated }

func (s *Set) addGenerated(list []Generator) {
	for _, g := range list {
		s.generated[g.Generates] = g.Object
	}
}

// namesAt returns the texts of a field that are not empty.
func namesAt(field string, text func(path ...any) string) []string {
	steps := func(field string) (path []any) {
		for step := range strings.SplitSeq(field, ".") {
			path = append(path, step)
		}
		return path
	}
	before, after, list := strings.Cut(field, ".*.")
	paths := [][]any{steps(field)}
	for i := 0; list && i < maxGenerated; i++ {
		paths = append(paths, slices.Concat(steps(before), []any{i}, steps(after)))
	}
	var names []string
	for _, path := range paths {
		if name := text(path...); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func textsOf(content map[string]any) func(path ...any) string {
	return func(path ...any) string { return At[string](content, path...) }
}

func nodeTexts(n *yaml.Node) func(path ...any) string {
	return func(path ...any) string {
		_, value := locateValue(n, path)
		return scalar(value)
	}
}

// generator returns the object from which a controller in the cluster creates k, nil if no such object is known.
func (s *Set) generator(k key) *Object {
	for _, set := range append([]*Set{s}, s.others()...) {
		if o := cmp.Or(set.generated[Generated{k.kind, k.namespace, k.name}], set.generated[Generated{k.kind, "", k.name}]); o != nil {
			return o
		}
	}
	return nil
}
