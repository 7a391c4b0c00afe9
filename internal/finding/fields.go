package finding

// Sentences that name a field of an object's spec: the packages that fetch, log in and verify do not know the fields.
// TestFields checks that the fields exist.

// Logins and authorities.
const (
	LoginInSecret            = "write them into a Secret and refer to it with spec.secretRef"
	LoginOfRegistry          = "write them into a Secret of type kubernetes.io/dockerconfigjson and refer to it with spec.secretRef"
	RegistryLogin            = "log in with 'helm registry login %s', or refer with spec.secretRef to a Secret of type kubernetes.io/dockerconfigjson"
	HelmLogin                = "the server may want credentials: refer with spec.secretRef to a Secret with username and password"
	HelmLoginRefused         = "the server does not accept the username and password of spec.secretRef, or of the URL"
	HelmLoginForbidden       = "the user of spec.secretRef may lack the permission to read this repository"
	HelmLoginRate            = "the server limits requests without a login: one in spec.secretRef may raise the limit"
	GitLogin                 = "the repository may want credentials: refer with spec.secretRef to a Secret with username and password, or with bearerToken"
	GitLoginRefused          = "the server does not accept the credentials of spec.secretRef"
	GitLoginForbidden        = "the credentials of spec.secretRef may lack the permission to read this repository"
	GitHidden                = "servers hide private repositories in this way too: they need a Secret in spec.secretRef"
	SSHLogin                 = "a repository with an ssh:// URL needs a Secret with identity and known_hosts in spec.secretRef"
	SSHForbidden             = "the public half of the identity in spec.secretRef may lack the permission to read this repository"
	KnownHostsUnread         = "'known_hosts' in the Secret of spec.secretRef cannot be read"
	KnownHosts               = "add what ssh-keyscan prints for the host to known_hosts in the Secret of spec.secretRef, once you have made sure that it is right"
	S3Login                  = "the bucket may want credentials: refer with spec.secretRef to a Secret with accesskey and secretkey"
	GoogleLogin              = "the bucket may want credentials: refer with spec.secretRef to a Secret with serviceaccount"
	AzureLogin               = "the container may want credentials: refer with spec.secretRef to a Secret, for example with accountKey or sasKey"
	ProxyLogin               = "the proxy wants credentials: write them into the Secret of spec.proxySecretRef, or into HTTPS_PROXY or HTTP_PROXY as http://user:password@host:port"
	ProxyLoginRefused        = "the proxy wants other credentials: username and password stand in the Secret of spec.proxySecretRef"
	RegistryCA               = "if the registry's certificate is from a private CA, refer with spec.certSecretRef to a Secret with that CA in ca.crt"
	ServerCA                 = "if the server's certificate is from a private CA, refer with spec.certSecretRef to a Secret with that CA in ca.crt"
	BucketCA                 = "if the server's certificate is from a private CA, refer with spec.certSecretRef to a Secret with ca.crt"
	GitCA                    = "if the server's certificate is from a private CA, put that CA into ca.crt of the Secret of spec.secretRef"
	OtherCA                  = "the CA in the Secret of spec.certSecretRef did not issue the server's certificate"
	ClientCertificate        = "the server may want a client certificate: refer with spec.certSecretRef to a Secret with tls.crt and tls.key"
	ClientCertificateRefused = "the server may not accept the client certificate of spec.certSecretRef"
	PassLogin                = "the archive is on %s, but the credentials are for %s: spec.passCredentials: true sends them there too"
	OtherProvider            = "'%s' is a registry of %s: spec.provider should be %s"
	OtherSTS                 = "spec.sts.endpoint: '%s' is not STS of AWS over https: the identity of this machine is not shown to it"
	ManifestProxy            = "spec.proxySecretRef leads through a proxy that the manifest chose"
	ManifestCA               = "spec.certSecretRef names an authority that the manifest chose"
	ManifestInsecure         = "spec.insecure does without verified TLS"
)

// Settings of TLS, in the words of Flux.
const (
	TLSType       = "secret '%s' in certSecretRef should be of type %s or %s"
	TLSUnusable   = "TLS settings in secretRef are ignored: %v"
	TLSIgnored    = "TLS settings in secret '%s' in secretRef are ignored: certSecretRef has its own"
	TLSDeprecated = "TLS settings in secret '%s' in secretRef are deprecated: use certSecretRef"
)

// Addresses, versions and limits.
const (
	Timeout              = "spec.timeout"
	RegionField          = "spec.region"
	BucketField          = "spec.bucketName"
	PlainHTTP            = "spec.insecure: true is plain HTTP: leave it out if the registry speaks HTTPS"
	RegistryPlain        = "the registry speaks plain HTTP: spec.insecure: true allows that"
	ServerPlain          = "the server speaks plain HTTP on this port: spec.url has to begin with http://"
	URLHasChart          = "spec.url ends in the chart's name, which is appended to it: use %s%s"
	URLOfCharts          = "charts and images often have the same name: is spec.url the URL of the charts?"
	URLOfIndex           = "spec.url is the directory that holds index.yaml, not a page about it; a page may also ask to sign in"
	URLOfIndexOrRegistry = "spec.url is the directory that holds index.yaml; a registry has an oci:// URL and type: oci"
	URLOfClone           = "spec.url is the URL that git clone takes, which is often not the one that a browser shows"
	URLMoved             = "redirected to %s, which does not get the credentials for %s: if the repository has moved, change spec.url"
	URLOfAzure           = "with the provider azure spec.endpoint looks like https://ACCOUNT.blob.core.windows.net"
	TypeIsOCI            = "spec.type is oci, so the URL has to "
	VersionOfChart       = "the URL is that of a repository: the version goes into the chart's spec.version"
	DigestInRef          = "the digest goes into spec.ref.digest"
	TagInRef             = "the tag goes into spec.ref.tag"
	RefIn                = "what spec.ref names in "
	DefaultBranch        = "the default branch of the repository is %s: spec.ref.branch names the one to use"
	TagOfName            = "there is a tag of this name: use spec.ref.tag: %s"
	LeaveOut             = "spec.ignore and a .sourceignore file in the bucket leave objects out"
)

// Signatures.
const (
	WithoutCertificate = "the signature comes without a certificate: it was made with a key; refer with spec.verify.secretRef to a Secret with the public key in a name that ends in .pub"
	WithCertificate    = "the signature comes with a certificate: it was made keyless, which is verified without spec.verify.secretRef, with spec.verify.matchOIDCIdentity"
)
