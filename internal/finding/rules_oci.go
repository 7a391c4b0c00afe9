package finding

func ociRules() []Rule {
	source := func(spec string) string {
		return object(sourceV1, "OCIRepository", "podinfo", "interval: 10m\nurl: oci://registry.example.org/charts/podinfo\n"+spec)
	}
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: puller\n"
	return []Rule{
		{
			Code: InvalidReference, Name: "invalid-reference", Group: groupURLs, Severity: Error,
			Summary:     "A tag or digest is not valid",
			Explanation: "Tags consist of at most 128 letters, digits, _, . and -; a digest is an algorithm, a colon and hexadecimal digits in lower case.",
			Fix:         "Write the tag or digest as the registry shows it.",
			Example:     source("ref:\n  tag: 6.5.0+build\n"),
			Better:      source("ref:\n  tag: 6.5.0\n"),
		},
		{
			Code: OddMediaType, Name: "odd-media-type", Group: groupSettings, Severity: Warning,
			Summary:     "A layer is selected by a media type that no layer has",
			Explanation: "spec.layerSelector.mediaType must equal the media type of a layer. A misspelled type, or the type of a config, selects nothing.",
			Fix:         "Write the media type of the layer: for charts application/vnd.cncf.helm.chart.content.v1.tar+gzip.",
			Example:     source("layerSelector:\n  mediaType: application/vnd.cncf.helm.config.v1+json\n  operation: copy\n"),
			Better:      source("layerSelector:\n  mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip\n  operation: copy\n"),
		},
		{
			Code: ServiceAccount, Name: "service-account", Group: groupSecrets, Severity: Error,
			Summary:     "A service account gives no login",
			Explanation: "The API server would refuse the service account, or it is meant to log in to a cloud, which requires a feature gate of source-controller.",
			Fix:         "Fix the ServiceAccount and its imagePullSecrets, or use spec.secretRef.",
			Example:     documents(source("serviceAccountName: puller\n"), account+"imagePullSecrets:\n- login\n"),
			Better: documents(source("serviceAccountName: puller\n"), account+"imagePullSecrets:\n- name: login\n",
				"apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\ntype: kubernetes.io/dockerconfigjson\nstringData:\n"+
					"  .dockerconfigjson: '{\"auths\": {\"registry.example.org\": {\"username\": \"user\", \"password\": \"secret\"}}}'\n"),
		},
	}
}
