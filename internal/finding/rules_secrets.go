package finding

func verificationRules() []Rule {
	chart := func(verify string, more ...string) string {
		return documents(append([]string{ociRepository(""), helmChart("verify:\n" + indented(verify))}, more...)...)
	}
	const cosign = "provider: cosign\nsecretRef:\n  name: keys\n"
	const identity = "matchOIDCIdentity:\n- issuer: ^https://token\\.actions\\.githubusercontent\\.com$\n  subject: ^https://github\\.com/example/charts\n"
	key := secret("keys", block("cosign.pub", exampleKey))
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
			Code: InvalidExpression, Name: "invalid-expression", Group: groupVerification, Severity: Error,
			Summary:     "An issuer or subject is not a valid regular expression",
			Explanation: "Identities are matched with regular expressions in RE2 syntax. With an invalid one, nothing can be verified.",
			Fix:         "Correct the expression; write a backslash before a literal bracket or dot.",
			Example:     chart("provider: cosign\nmatchOIDCIdentity:\n- issuer: .*\n  subject: \"(\"\n"),
			Better:      chart("provider: cosign\n" + identity),
		},
		{
			Code: NoVerificationKeys, Name: "no-verification-keys", Group: groupVerification, Severity: Error,
			Summary:     "A verification has no keys, certificates or trust policy",
			Explanation: "Of a Secret for cosign, only entries whose names end in .pub are public keys. Notation requires a Secret with a trust policy, and trusts the certificates in it whose names end in .crt or .pem; it has no keyless mode.",
			Fix:         "Name a Secret in spec.verify.secretRef: with cosign.pub for cosign, with trustpolicy.json and certificates for notation.",
			Example:     chart(cosign, secret("keys", block("cosign.pem", exampleKey))),
			Better:      chart(cosign, key),
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
			Summary:     "A Secret has no login that can be used",
			Explanation: "source-controller refuses a user name without a password and a password without a user name. An ssh:// URL of a GitRepository needs identity and known_hosts, an https:// URL username and password or bearerToken. Buckets of the generic provider require accesskey and secretkey; LDAP logins require username and password.",
			Fix:         "Put the keys that the message names into the Secret.",
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
			Explanation: "It may work today, but not as intended or not in future versions. A login has the names username and password. TLS settings belong in certSecretRef, under the names tls.crt, tls.key and ca.crt, in a Secret of type Opaque or kubernetes.io/tls. For a verification, names of public keys end in .pub, and those of certificates in .crt or .pem: other entries are ignored, and signatures made with them are refused.",
			Fix:         "Give the keys of the Secret the names that are read: username and password; ca.crt, tls.crt and tls.key for certSecretRef; .pub for public keys.",
			Example:     documents(repository(httpURL+tls), secret("tls", block("caFile", exampleCA))),
			Better:      documents(repository(httpURL+tls), secret("tls", block("ca.crt", exampleCA))),
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
