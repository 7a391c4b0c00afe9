package finding

func verificationRules() []Rule {
	chart := func(verify string, more ...string) string {
		return documents(append([]string{ociRepository(""), helmChart("verify:\n" + indented(verify))}, more...)...)
	}
	const cosign = "provider: cosign\nsecretRef:\n  name: keys\n"
	const notation = "provider: notation\nsecretRef:\n  name: policy\n"
	const policy = "trustpolicy.json: '{\"version\": \"1.0\", \"trustPolicies\": []}'\n"
	const identity = "matchOIDCIdentity:\n- issuer: ^https://token\\.actions\\.githubusercontent\\.com$\n  subject: ^https://github\\.com/example/charts\n"
	key := secret("keys", block("cosign.pub", exampleKey))
	trust := secret("policy", policy+block("ca.crt", exampleCA))
	return []Rule{
		{
			Code: UselessVerify, Name: "useless-verify", Group: groupVerification, Severity: Error,
			Summary:     "spec.verify is set on a chart that cannot be verified",
			Explanation: "Flux verifies signatures only of charts from OCI registries. A chart from an HTTP repository with spec.verify never becomes ready.",
			Fix:         "Remove spec.verify, or take the chart from a registry; --keyring checks provenance files.",
			Example:     documents(repository(httpURL), helmChart("verify:\n"+indented(cosign)), key),
			Better:      chart(cosign, key),
		},
		{
			Code: VerifyAnyone, Name: "verify-anyone", Group: groupVerification, Severity: Warning,
			Summary:     "Keyless verification accepts a signature of anyone",
			Explanation: "Without keys and identities, any certificate of the public authority is accepted, and anyone with an e-mail address can get one.",
			Fix:         "Set spec.verify.matchOIDCIdentity (for a HelmRelease with spec.chartRef, in its OCIRepository), or name a Secret with keys.",
			Example:     chart("provider: cosign\n"),
			Better:      chart("provider: cosign\n" + identity),
		},
		{
			Code: UselessIdentities, Name: "useless-identities", Group: groupVerification, Severity: Warning,
			Summary:     "matchOIDCIdentity has no effect with notation or with cosign keys",
			Explanation: "Identities are matched only in keyless verification, so the intended restriction has no effect.",
			Fix:         "Remove matchOIDCIdentity, or the keys.",
			Example:     chart(notation+identity, trust),
			Better:      chart(notation, trust),
		},
		{
			Code: InvalidExpression, Name: "invalid-expression", Group: groupVerification, Severity: Error,
			Summary:     "An issuer or subject is not a valid regular expression",
			Explanation: "Identities are matched with regular expressions in RE2 syntax. With an invalid one, nothing can be verified.",
			Fix:         "Correct the expression; write a backslash before a literal bracket or dot.",
			Example:     chart("provider: cosign\nmatchOIDCIdentity:\n- issuer: .*\n  subject: \"(\"\n"),
			Better:      chart("provider: cosign\n" + identity),
		},
		{
			Code: NoVerificationKeys, Name: "no-verification-keys", Group: groupVerification, Severity: Error,
			Summary:     "A Secret for cosign has no public key",
			Explanation: "Flux uses only entries of the Secret whose names end in .pub as public keys.",
			Fix:         "Store the public key under a name such as cosign.pub.",
			Example:     chart(cosign, secret("keys", block("cosign.pem", exampleKey))),
			Better:      chart(cosign, key),
		},
		{
			Code: NoTrustPolicy, Name: "no-trust-policy", Group: groupVerification, Severity: Error,
			Summary:     "A Secret for notation lacks trustpolicy.json or certificates",
			Explanation: "Notation requires a trust policy, and trusts the certificates in the same Secret whose names end in .crt or .pem.",
			Fix:         "Store the policy under the name trustpolicy.json, and the certificates under names that end in .crt or .pem.",
			Example:     chart(notation, secret("policy", block("ca.crt", exampleCA))),
			Better:      chart(notation, trust),
		},
		{
			Code: NoVerificationInput, Name: "no-verification-secret", Group: groupVerification, Severity: Error,
			Summary:     "spec.verify with notation names no Secret",
			Explanation: "Notation has no keyless mode: without a trust policy there is nothing to verify with.",
			Fix:         "Name a Secret with trustpolicy.json and certificates in spec.verify.secretRef.",
			Example:     chart("provider: notation\n"),
			Better:      chart(notation, trust),
		},
		{
			Code: IgnoredKey, Name: "ignored-key", Group: groupVerification, Severity: Warning,
			Summary:     "A Secret for verification has a key or certificate that is ignored",
			Explanation: "Public keys have names that end in .pub, certificates names that end in .crt or .pem. Entries with other names are ignored, and signatures made with them are refused.",
			Fix:         "Rename the entry in the Secret.",
			Example:     chart(cosign, secret("keys", block("cosign.pub", exampleKey)+block("next.pem", exampleKey))),
			Better:      chart(cosign, secret("keys", block("cosign.pub", exampleKey)+block("next.pub", exampleKey))),
		},
		{
			Code: MissingKeys, Name: "missing-keys", Group: groupVerification, Severity: Error,
			Summary:     "The Secret that a verification needs is not in the input",
			Explanation: "Nothing can be verified without its public keys, certificates or policies. They are not confidential, and reviewers should see which of them are trusted.",
			Fix:         "Add the file that holds the Secret with -f, or put it into the repository.",
			Example:     chart(cosign),
			Better:      chart(cosign, key),
		},
	}
}

func secretRules() []Rule {
	const login = "secretRef:\n  name: login\n"
	const tls = "certSecretRef:\n  name: tls\n"
	const credentials = "username: user\npassword: secret\n"
	full := secret("login", credentials)
	docker := func(host string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\ntype: kubernetes.io/dockerconfigjson\nstringData:\n" +
			"  .dockerconfigjson: '{\"auths\": {\"" + host + "\": {\"username\": \"user\", \"password\": \"secret\"}}}'\n"
	}
	return []Rule{
		{
			Code: IncompleteLogin, Name: "incomplete-login", Group: groupSecrets, Severity: Error,
			Summary:     "A Secret has an incomplete login",
			Explanation: "source-controller refuses a user name without a password and a password without a user name: nothing is fetched.",
			Fix:         "Put both username and password into the Secret.",
			Example:     documents(repository(httpURL+login), secret("login", "password: secret\n")),
			Better:      documents(repository(httpURL+login), full),
		},
		{
			Code: BrokenTLS, Name: "broken-tls", Group: groupSecrets, Severity: Error,
			Summary:     "A Secret with TLS settings cannot be used",
			Explanation: "A client certificate consists of tls.crt and tls.key, an authority of ca.crt, all in PEM format.",
			Fix:         "Add the missing entry to the Secret, in PEM format.",
			Example:     documents(repository(httpURL+tls), secret("tls", "ca.crt: not a certificate\n")),
			Better:      documents(repository(httpURL+tls), secret("tls", block("ca.crt", exampleCA))),
		},
		{
			Code: NoRegistryLogin, Name: "no-registry-login", Group: groupSecrets, Severity: Error,
			Summary:     "A Secret has no login for the registry",
			Explanation: "A docker configuration has one login for each host. The host of the registry must be among them, spelled as in the URL.",
			Fix:         "Add a login for the host of the URL.",
			Example:     documents(ociRepository(login), docker("other.example.org")),
			Better:      documents(ociRepository(login), docker("registry.example.org")),
		},
		{
			Code: OddSecret, Name: "odd-secret", Group: groupSecrets, Severity: Warning,
			Summary:     "A Secret is of an unusual type, or has keys that are outdated or ignored",
			Explanation: "It may work today, but not as intended or not in future versions: TLS settings belong in certSecretRef, under the names tls.crt, tls.key and ca.crt, in a Secret of type Opaque or kubernetes.io/tls.",
			Fix:         "Put TLS settings into a Secret of type Opaque for certSecretRef, under ca.crt, tls.crt and tls.key.",
			Example:     documents(repository(httpURL+tls), secret("tls", block("caFile", exampleCA))),
			Better:      documents(repository(httpURL+tls), secret("tls", block("ca.crt", exampleCA))),
		},
		{
			Code: UselessSecret, Name: "useless-secret", Group: groupSecrets, Severity: Warning,
			Summary:     "A Secret for a repository has neither a login nor TLS settings",
			Explanation: "Flux reads username and password. Other names are ignored, and no login is used.",
			Fix:         "Name the keys username and password.",
			Example:     documents(repository(httpURL+login), secret("login", "user: user\npass: secret\n")),
			Better:      documents(repository(httpURL+login), full),
		},
		{
			Code: GitSecret, Name: "git-secret", Group: groupSecrets, Severity: Error,
			Summary:     "A Secret for a GitRepository cannot be used with its URL",
			Explanation: "An ssh:// URL needs identity and known_hosts, an https:// URL username and password or bearerToken.",
			Fix:         "Put the keys that the URL needs into the Secret.",
			Example:     documents(object(sourceV1, "GitRepository", "charts", "interval: 10m\nurl: ssh://git@git.example.org/charts\n"+login), full),
			Better:      documents(git(login), full),
		},
		{
			Code: BucketSecret, Name: "bucket-secret", Group: groupSecrets, Severity: Error,
			Summary:     "A Secret for a Bucket lacks keys, or its STS settings conflict",
			Explanation: "Buckets of the generic provider require accesskey and secretkey; LDAP logins require username and password.",
			Fix:         "Put the keys that the message names into the Secret.",
			Example:     documents(bucket(login), full),
			Better:      documents(bucket(login), secret("login", "accesskey: key\nsecretkey: secret\n")),
		},
		{
			Code: ProxySecret, Name: "proxy-secret", Group: groupSecrets, Severity: Error,
			Summary:     "A Secret for a proxy cannot be used",
			Explanation: "It must have the URL of the proxy as address, and may have username and password.",
			Fix:         "Store the URL under the name address, scheme included.",
			Example:     documents(git("proxySecretRef:\n  name: proxy\n"), secret("proxy", "address: proxy.example.org\n")),
			Better:      documents(git("proxySecretRef:\n  name: proxy\n"), secret("proxy", "address: http://proxy.example.org:3128\n")),
		},
	}
}
